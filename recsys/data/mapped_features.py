"""Encoded features as plain files that are mapped."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.feature_schema import FeatureSpec
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.mapped_arrays import map_array, write_array
from recsys.foundations import FormatError, Ragged


def write_features(folder: Path, what: str, table: FeatureTable) -> None:
    """Write each feature as `WHAT_NUMBER.npy`, lists with `WHAT_NUMBER_offsets.npy` beside it.

    The number is the feature's place in the schema, for names may hold what file names must not.
    """
    for number, spec in enumerate(table.schema):
        column, path = table.columns[spec.name], folder / f"{what}_{number}.npy"
        if isinstance(column, Ragged):
            write_array(_offsets_path(path), column.offsets, np.int64)
            column = column.rows
        write_array(path, column, _dtype(spec))


def map_features(folder: Path, what: str, schema: FeatureSchema, num_rows: int) -> FeatureTable:
    """Map what `write_features` wrote.

    Raises:
        FormatError: A file is damaged, or of another length.
    """
    columns = {
        spec.name: _map_column(folder / f"{what}_{number}.npy", spec, num_rows)
        for number, spec in enumerate(schema)
    }
    return FeatureTable(schema, columns, num_rows)


def _map_column(path: Path, spec: FeatureSpec, num_rows: int) -> NDArray[Any] | Ragged:
    if spec.kind == "vector":
        return map_array(path, _dtype(spec), num_rows, spec.size)
    if spec.kind not in ("multi", "text"):
        return map_array(path, _dtype(spec), num_rows)
    offsets, rows = (
        map_array(_offsets_path(path), np.int64, num_rows + 1),
        map_array(path, np.int32, None),
    )
    if offsets[0] != 0 or offsets[-1] != len(rows):
        raise FormatError(f"{_offsets_path(path)} does not divide {path.name}.")
    return Ragged(offsets, rows)


def _offsets_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}_offsets.npy")


def _dtype(spec: FeatureSpec) -> type[np.generic]:
    return np.float32 if spec.kind in ("numeric", "vector") else np.int32
