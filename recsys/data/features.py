"""Features as the towers read them: one encoded column a feature, one row an entity or event."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.feature_encoding import encode_column, fit_column, missing_column
from recsys.data.feature_schema import FeatureOptions, FeatureSpec
from recsys.foundations import DataError, FormatError, Ragged

Column = NDArray[Any] | Ragged


@dataclass(frozen=True)
class FeatureSchema:
    """The features of an item, a user or an interaction, in a fixed order."""

    specs: tuple[FeatureSpec, ...] = ()

    def __len__(self) -> int:
        return len(self.specs)

    def __iter__(self) -> Iterator[FeatureSpec]:
        return iter(self.specs)

    @property
    def names(self) -> tuple[str, ...]:
        """Give the features' names, in order."""
        return tuple(spec.name for spec in self.specs)

    @classmethod
    def fit(cls, table: pa.Table, options: Mapping[str, FeatureOptions]) -> "FeatureSchema":
        """Learn vocabularies, means and bucket edges on the rows given: training rows only.

        Args:
            table: One row an entity; more columns than asked for are ignored.
            options: Column -> how to encode it; the order is kept.

        Raises:
            DataError: A column is absent, or does not hold what its kind needs.
        """
        absent = [name for name in options if name not in table.column_names]
        if absent:
            raise DataError(
                f"The feature column {absent[0]!r} is absent; there are "
                f"{', '.join(map(repr, table.column_names))}."
            )
        return cls(tuple(fit_column(name, table[name], how) for name, how in options.items()))

    def encode(self, table: pa.Table) -> "FeatureTable":
        """Encode rows; a column that the table lacks is missing in every row.

        Raises:
            DataError: A column does not hold what its kind needs.
        """
        num_rows = table.num_rows
        columns: dict[str, Column] = {
            spec.name: encode_column(spec, table[spec.name])
            if spec.name in table.column_names
            else missing_column(spec, num_rows)
            for spec in self
        }
        return FeatureTable(self, columns, num_rows)

    def to_json(self) -> list[dict[str, Any]]:
        """Give plain values that `from_json` reads."""
        return [spec.to_json() for spec in self]

    @classmethod
    def from_json(cls, plain: list[dict[str, Any]]) -> "FeatureSchema":
        """Rebuild a schema from plain values."""
        return cls(tuple(FeatureSpec.from_json(spec) for spec in plain))


@dataclass(frozen=True)
class FeatureTable:
    """Encoded features of N rows.

    Attributes:
        schema: The features and their order.
        columns: Name -> categorical, bucket: [N], int32, row 0 unknown or missing; multi, text:
            N lists of int32, empty where missing; numeric: [N], float32, standardised, NaN where
            missing; vector: [N, V], float32, zeros where missing.
        num_rows: N, also where there is no feature.
    """

    schema: FeatureSchema
    columns: dict[str, Column]
    num_rows: int

    def __len__(self) -> int:
        return self.num_rows

    @classmethod
    def missing(cls, schema: FeatureSchema, num_rows: int) -> "FeatureTable":
        """Make rows in which every feature is missing."""
        return cls(schema, {spec.name: missing_column(spec, num_rows) for spec in schema}, num_rows)

    def known(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Tell of which rows the features named hold anything that is known: [N]."""
        known = np.zeros(len(self), bool)
        for spec in self.schema:
            if spec.name in names:
                known |= _known(spec, self.columns[spec.name])
        return known

    def take(self, rows: NDArray[np.integer]) -> "FeatureTable":
        """Take rows: [B], int64, in the order given; -1 gives a row with nothing known."""
        if len(self) == 0:
            return self.missing(self.schema, len(rows))
        columns = {
            spec.name: _take(spec, self.columns[spec.name], rows, rows < 0) for spec in self.schema
        }
        return FeatureTable(self.schema, columns, len(rows))

    def slice(self, start: int, stop: int) -> "FeatureTable":
        """Give rows start to before stop; the columns are views."""
        columns: dict[str, Column] = {
            name: column.slice(start, stop) if isinstance(column, Ragged) else column[start:stop]
            for name, column in self.columns.items()
        }
        return FeatureTable(self.schema, columns, len(range(len(self))[start:stop]))

    def followed_by(self, other: "FeatureTable") -> "FeatureTable":
        """Put the rows of another table of the same schema behind these."""
        columns = {
            name: _concatenate(column, other.columns[name]) for name, column in self.columns.items()
        }
        return FeatureTable(self.schema, columns, len(self) + len(other))

    def to_arrow(self, prefix: str) -> dict[str, pa.Array]:
        """Give the columns for a file, under ``prefix + name``."""
        return {prefix + name: _to_arrow(column) for name, column in self.columns.items()}

    @classmethod
    def from_arrow(cls, schema: FeatureSchema, table: pa.Table, prefix: str) -> "FeatureTable":
        """Read the columns that `to_arrow` gave.

        Raises:
            FormatError: A column is absent or of another form.
        """
        columns: dict[str, Column] = {}
        for spec in schema:
            if prefix + spec.name not in table.column_names:
                raise FormatError(f"The column {prefix + spec.name!r} is absent.")
            columns[spec.name] = _from_arrow(spec, table[prefix + spec.name])
        return cls(schema, columns, table.num_rows)


def _known(spec: FeatureSpec, column: Column) -> NDArray[np.bool_]:
    if isinstance(column, Ragged):  # value 0 is the unknown value of a list, but a bucket of a text
        known = np.full(len(column.rows), True) if spec.kind == "text" else column.rows > 0
        return np.bincount(column.owners()[known], minlength=len(column)) > 0
    if spec.kind == "numeric":
        return ~np.isnan(column)
    return np.any(column, axis=1) if spec.kind == "vector" else np.asarray(column > 0)


def _take(
    spec: FeatureSpec, column: Column, rows: NDArray[np.integer], absent: NDArray[np.bool_]
) -> Column:
    if isinstance(column, Ragged):  # work that grows with the rows taken, not with N
        starts = column.offsets[rows]
        lengths = np.where(absent, 0, column.offsets[rows + 1] - starts)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        flat = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(offsets, column.rows[flat])
    taken: NDArray[Any] = column[rows]
    if absent.any():
        taken[absent] = np.nan if spec.kind == "numeric" else 0
    return taken


def _concatenate(first: Column, second: Column) -> Column:
    if isinstance(first, Ragged) and isinstance(second, Ragged):
        offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
        return Ragged(offsets, np.concatenate([first.rows, second.rows]))
    return np.concatenate([np.asarray(first), np.asarray(second)])


def _to_arrow(column: Column) -> pa.Array:
    if isinstance(column, Ragged):
        return pa.LargeListArray.from_arrays(column.offsets, pa.array(column.rows, pa.int32()))
    if column.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])
    return pa.array(column)


def _from_arrow(spec: FeatureSpec, column: pa.ChunkedArray) -> Column:
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if spec.kind in ("multi", "text"):
        offsets = np.asarray(whole.offsets.to_numpy(), np.int64)
        return Ragged(offsets - offsets[0], np.asarray(whole.flatten().to_numpy(), np.int32))
    if spec.kind == "vector":
        flat = np.asarray(whole.flatten().to_numpy(), np.float32)
        return flat.reshape(len(whole), spec.size)
    return np.array(whole.to_numpy(), np.float32 if spec.kind == "numeric" else np.int32)
