"""What one model has learnt, into another of the same make over other ids and features.

Dimensions: N users or items of the new model, D embedding width, P pieces of a tower.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import FeatureSchema
from recsys.models.carry_over_features import carry_over_features
from recsys.models.feature_encoder import FeatureEncoder
from recsys.models.row_match import RowMatch, copy_rows
from recsys.models.towers import ItemTower, UserTower
from recsys.models.two_tower import TwoTower
from recsys.models.unknown_ids import untaught_rows

# Features go over one by one; a ridge part is fitted to the new data and not carried over.
_DONE_APART = ("user_tower.features.", "user_tower.context.", "item_tower.features.", "ridge.")

_BIASES = "item_tower.bias.weight"

_Tower: TypeAlias = UserTower | ItemTower


@dataclass(frozen=True)
class CarriedOver:
    """What became of a model's values.

    Attributes:
        kept: Features that go on, as `items.price`.
        new: Features that the old model did not read.
        dropped: Features that the new model does not read.
        fresh_features: Feature -> why it starts anew although the old model read it.
        fresh_layers: Values of layers that start anew, as the old ones have another shape.
    """

    kept: tuple[str, ...]
    new: tuple[str, ...]
    dropped: tuple[str, ...]
    fresh_features: Mapping[str, str]
    fresh_layers: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """Give the features `kept`, `new` and `dropped`; one that starts anew is new."""
        new = len(self.new) + len(self.fresh_features)
        return {"kept": len(self.kept), "new": new, "dropped": len(self.dropped)}


@torch.no_grad()
def carry_over(
    model: TwoTower,
    old: TwoTower,
    *,
    users: RowMatch,
    items: RowMatch,
    schemas: Mapping[str, FeatureSchema],
    old_schemas: Mapping[str, FeatureSchema],
    old_counts: NDArray[np.int64],
) -> CarriedOver:
    """Overwrite a model's first values by what an old one has learnt.

    Vectors and biases of ids go over as they are. A new id starts from the row that stood for
    unknown ids, so that with features a new item starts where the old model placed an item it did
    not know. Where training did not teach that row, `untaught_rows` says what stands in its place;
    and biases that begin at log popularity do so for new items too, moved by as much as the kept
    ones lie above theirs on average.

    The tables of histories have no such row: there a new item starts at the mean of the old ones,
    and adds to a history what an item adds on average; noise around 0 would shorten the vectors of
    those who met it. Layers go over where their shapes agree. Which items count as trained is left
    as it is: that follows the new data.

    Args:
        model: Is changed in place; no random number is drawn.
        old: Of the same specification but for the names of features.
        users: Rows of the users.
        items: Rows of the items.
        schemas: Of "users", "items" and "context".
        old_schemas: Likewise, of the old model.
        old_counts: Training events of each item of the old model.
    """
    values, old_values = model.state_dict(), old.state_dict()  # share memory with the parameters
    untaught = untaught_rows(old, old_counts)
    done = _carry_over_ids(values, old_values, users, items, untaught)
    done |= _carry_over_first_layers(model, old)
    fresh_layers = []
    for name in sorted(values.keys() - done):
        if name.startswith(_DONE_APART) or name.endswith(".rows.trained"):
            continue
        if name in old_values and old_values[name].shape == values[name].shape:
            values[name].copy_(old_values[name])
        else:
            fresh_layers.append(name)
    outcome, new, dropped = _carry_over_all_features(model, old, schemas, old_schemas)
    return CarriedOver(
        kept=tuple(name for name, reason in outcome.items() if reason is None),
        new=new,
        dropped=dropped,
        fresh_features={name: reason for name, reason in outcome.items() if reason is not None},
        fresh_layers=tuple(fresh_layers),
    )


def _carry_over_ids(
    values: Mapping[str, Tensor],
    old_values: Mapping[str, Tensor],
    users: RowMatch,
    items: RowMatch,
    untaught: Mapping[str, Tensor],
) -> set[str]:
    """Carry over all tables of ids that are there; give their names."""
    tables = {
        "user_tower.ids.weight": users,
        "item_tower.ids.weight": items,
        _BIASES: items,
    }
    for name in tables.keys() & values.keys():
        old, start = old_values[name], values[name].clone()
        unknown = untaught.get(name, old[-1])
        copy_rows(values[name], old, np.append(tables[name].old_rows, -1), unknown)
        if name == _BIASES and name in untaught and start.any():
            _move_on_average(values[name], start, tables[name].old_rows)
    of_histories = {
        "user_tower.history_table.weight",
        "user_tower.history.gate.keys.weight",
        "user_tower.history.gate.biases.weight",
    }
    for name in of_histories & values.keys():
        old, learned = old_values[name], old_values["item_tower.rows.trained"]
        rows = old[learned] if learned.any() else old
        copy_rows(values[name], old, items.old_rows, rows.mean(dim=0))
    return (tables.keys() | of_histories) & values.keys()


def _move_on_average(biases: Tensor, start: Tensor, old_rows: NDArray[np.int64]) -> None:
    """Let the biases [N + 1, 1] without an old row begin where they start, moved as the others."""
    kept = torch.from_numpy(np.append(old_rows, -1) >= 0).to(biases.device)
    moved = (biases - start)[kept].mean() if kept.any() else 0.0
    biases[~kept] = start[~kept] + moved


def _carry_over_all_features(
    model: TwoTower,
    old: TwoTower,
    schemas: Mapping[str, FeatureSchema],
    old_schemas: Mapping[str, FeatureSchema],
) -> tuple[dict[str, str | None], tuple[str, ...], tuple[str, ...]]:
    """Give the outcome of each feature that both models read, and the names of the others."""
    here, there = _feature_encoders(model), _feature_encoders(old)
    outcome: dict[str, str | None] = {}
    for table in here:
        both = carry_over_features(here[table], there[table], schemas[table], old_schemas[table])
        outcome |= {f"{table}.{name}": reason for name, reason in both.items()}
    names, old_names = _feature_names(here), _feature_names(there)
    new = tuple(name for name in names if name not in outcome)
    return outcome, new, tuple(name for name in old_names if name not in outcome)


def _feature_encoders(model: TwoTower) -> dict[str, FeatureEncoder]:
    return {
        "users": model.user_tower.features,
        "context": model.user_tower.context,
        "items": model.item_tower.features,
    }


def _feature_names(encoders: Mapping[str, FeatureEncoder]) -> list[str]:
    return [f"{table}.{name}" for table, encoder in encoders.items() for name in encoder.names]


def _carry_over_first_layers(model: TwoTower, old: TwoTower) -> set[str]:
    """Carry over the layers that read concatenated pieces, the columns of each piece by themselves.

    There may be other features than there were, or in another order.

    Returns:
        The names of their weights.
    """
    done = set()
    towers: dict[str, tuple[_Tower, _Tower]] = {
        "user_tower": (model.user_tower, old.user_tower),
        "item_tower": (model.item_tower, old.item_tower),
    }
    for side, (tower, old_tower) in towers.items():
        values, old_values = tower.state_dict(), old_tower.state_dict()
        name, pieces, old_pieces = "combine.layers.0.weight", _pieces(tower), _pieces(old_tower)
        if not tower.combine.concat:
            continue
        width = values[name].shape[1] // len(pieces)
        for place, piece in enumerate(pieces):
            if piece in old_pieces:
                start = old_pieces.index(piece) * width
                block = old_values[name][:, start : start + width]
                values[name][:, place * width : (place + 1) * width].copy_(block)
        done.add(f"{side}.{name}")
    return done


def _pieces(tower: _Tower) -> list[str]:
    """Name the pieces of a tower in the order in which its `forward` puts them together."""
    pieces = ["id"] if tower.ids is not None else []
    pieces += [f"feature {name}" for name in tower.features.names]
    if isinstance(tower, UserTower):
        pieces += [f"context {name}" for name in tower.context.names]
        pieces += ["history"] if tower.history is not None else []
    return pieces
