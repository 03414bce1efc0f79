"""What the graphs of the towers take: names, types, shapes and meanings.

Dimensions: B rows, L entries of a history, V values of the longest list.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.bundle import Bundle
from recsys.data import NO_TIME, FeatureSchema, FeatureSpec
from recsys.models import TwoTower

BATCH, LENGTH = "batch", "length"

_CODE_OF = {
    "categorical": "The place of the value in `values`, counted from 1; 0 for a missing value and "
    "for one that is not there. Whole numbers are their digits, as texts.",
    "multi": "The place of each value in `values`, counted from 1; 0 for one that is not there. "
    "Each code once, in any order; nothing for missing values. Filled up with -1.",
    "bucket": "1 + the number of `edges` at or below the value; 0 for a missing value.",
    "numeric": "(value - mean) / scale in float64; NaN for a missing value.",
    "vector": "The numbers as they are; zeros for a missing vector.",
    "text": "The codes of the text's n-grams, as `text_codes` says; one that stands twice counts "
    "twice. Filled up with -1; nothing for a missing text.",
}


@dataclass(frozen=True)
class TowerInput:
    """One input of a graph.

    Attributes:
        name: Of the input.
        dtype: "int64" or "float32".
        shape: Sizes, or the names of those that may change from call to call.
        meaning: For whoever feeds it.
        encoding: How raw values become what is fed; JSON.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    meaning: str
    encoding: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give plain values that JSON can hold."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "meaning": self.meaning,
            **({"encoding": self.encoding} if self.encoding else {}),
        }


def user_inputs(bundle: Bundle) -> list[TowerInput]:
    """List the inputs of the user tower, in order."""
    model, tower = bundle.model, bundle.model.user_tower
    inputs = []
    if tower.ids is not None:
        inputs.append(_row("user", "users.parquet"))
    inputs += _features("user", bundle.users.features.schema, tower.features.names)
    inputs += _features("context", bundle.context_schema, tower.context.names)
    return inputs + _history(model)


def item_inputs(bundle: Bundle) -> list[TowerInput]:
    """List the inputs of the item tower, in order."""
    model, tower = bundle.model, bundle.model.item_tower
    reads_rows = tower.ids is not None or tower.bias is not None or model.ridge is not None
    inputs = [_row("item", "items.parquet")] if reads_rows else []
    return inputs + _features("item", bundle.items.features.schema, tower.features.names)


def _row(who: str, file: str) -> TowerInput:
    return TowerInput(
        f"{who}_row",
        "int64",
        (BATCH,),
        f"Which {who} it is: its `row` in {file}; -1 for any other.",
        {"file": file, "id": f"{who}_id", "code": "row", "unknown": -1},
    )


def _history(model: TwoTower) -> list[TowerInput]:
    if model.history_length == 0:
        return []
    codes = {"file": "items.parquet", "id": "item_id", "code": "row", "padding": -1}
    inputs = [
        TowerInput(
            "history",
            "int64",
            (BATCH, LENGTH),
            "The items that the user met, the newest first, repeats too: the `row` of each in "
            "items.parquet, items that are not there left out. Ends of shorter histories are -1. "
            f"The first {model.history_length} entries are read, the others are not.",
            codes | {"order": "newest first", "most_read": model.history_length},
        )
    ]
    if model.uses_times:
        inputs.append(
            TowerInput(
                "history_times",
                "int64",
                (BATCH, LENGTH),
                "When each entry of `history` was met, in microseconds since 1970 (UTC); "
                f"{NO_TIME} where that is not known and at the ends.",
                {"unit": "microseconds since 1970-01-01T00:00:00Z", "unknown": int(NO_TIME)},
            )
        )
    return inputs


def _features(whose: str, schema: FeatureSchema, names: list[str]) -> list[TowerInput]:
    specs = {spec.name: spec for spec in schema}
    return [
        _feature(f"{whose}.{name}", specs[name], f"{whose}_values_{number}")
        for number, name in enumerate(names)
    ]


def _feature(name: str, spec: FeatureSpec, length: str) -> TowerInput:
    plain: dict[str, Any] = {"column": spec.name, "kind": spec.kind, "rule": _CODE_OF[spec.kind]}
    match spec.kind:
        case "categorical" | "multi":
            plain["values"] = list(spec.values)
        case "bucket":
            plain["edges"] = list(spec.edges)
        case "numeric":
            plain |= {"mean": spec.mean, "scale": spec.scale}
        case "text":
            plain["num_buckets"] = spec.size
    if spec.separator is not None:
        plain["separator"] = spec.separator
    is_number = spec.kind in ("numeric", "vector")
    further: tuple[int | str, ...] = (length,) if spec.kind in ("multi", "text") else ()
    further = (spec.size,) if spec.kind == "vector" else further
    meaning = f"The column {spec.name!r}: {_CODE_OF[spec.kind]}"
    dtype = np.float32 if is_number else np.int64
    return TowerInput(name, np.dtype(dtype).name, (BATCH, *further), meaning, plain)
