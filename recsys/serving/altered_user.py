"""A query, and the same query with one thing hidden at a time.

Dimensions: V alterations, H distinct items of a history, L items that the model looks at.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation import EvaluationQueries
from recsys.foundations import Ragged
from recsys.models import TwoTower
from recsys.serving.hidden_features import hide_features


@dataclass(frozen=True)
class AlteredUser:
    """Queries: as it is; without each item; without each piece; with nothing known.

    Attributes:
        queries: [V], V = 1 + H + pieces + 1.
        history_rows: [H], rising, the items of the history that the model reads.
        pieces: What the others hide.
    """

    queries: EvaluationQueries
    history_rows: NDArray[np.int64]
    pieces: tuple[str, ...]


def alter_user(model: TwoTower, query: EvaluationQueries) -> AlteredUser:
    """Hide one thing after the other from the user tower.

    An item of the history is hidden by making all of its events those of an item that the model
    does not know, which every encoder leaves out.

    Args:
        model: Says what it reads.
        query: One.
    """
    length = min(int(query.histories.lengths[0]), model.history_length)
    recent = query.histories.rows[len(query.histories.rows) - length :]  # [L], oldest first
    distinct = np.unique(recent)
    pieces = _pieces(model)
    num = 1 + len(distinct) + len(pieces) + 1
    hidden = np.zeros((num, length), np.bool_)
    hidden[1 : 1 + len(distinct)] = recent[None, :] == distinct[:, None]
    hides = {piece: np.zeros(num, np.bool_) for piece in pieces}
    for place, piece in enumerate(pieces, start=1 + len(distinct)):
        hides[piece][[place, num - 1]] = True
    hidden[hides.get("history", np.zeros(num, np.bool_))] = True
    copies = query.take(np.zeros(num, np.int64))
    offsets = np.arange(num + 1, dtype=np.int64) * length
    times = None
    if query.history_times is not None:
        newest = query.history_times.rows[len(query.history_times.rows) - length :]
        times = Ragged(offsets, np.tile(newest, num))
    without_id = hides.get("id", np.zeros(num, np.bool_))
    altered = replace(
        copies,
        user_rows=np.where(without_id, -1, copies.user_rows),
        histories=Ragged(offsets, np.where(hidden, -1, recent).reshape(-1)),
        history_times=times,
        features=hide_features(copies.features, _under(hides, "features.")),
        context=hide_features(copies.context, _under(hides, "context.")),
    )
    return AlteredUser(altered, distinct.astype(np.int64), pieces)


def _pieces(model: TwoTower) -> tuple[str, ...]:
    tower = model.user_tower
    pieces = ["id"] if tower.ids is not None else []
    pieces += [f"features.{name}" for name in tower.features.names]
    pieces += [f"context.{name}" for name in tower.context.names]
    return (*pieces, "history") if model.history_length else tuple(pieces)


def _under(hides: dict[str, NDArray[np.bool_]], prefix: str) -> dict[str, NDArray[np.bool_]]:
    return {
        name.removeprefix(prefix): where for name, where in hides.items() if name.startswith(prefix)
    }
