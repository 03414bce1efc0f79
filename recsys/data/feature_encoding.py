"""Learn how to encode one column, and encode it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.feature_columns import (
    as_lists,
    as_numbers,
    as_text,
    is_list,
    is_text,
    whole_column,
)
from recsys.data.feature_schema import FeatureOptions, FeatureSpec
from recsys.data.text_hashing import hash_texts
from recsys.foundations import DataError, Ragged, sorted_distinct


def infer_kind(column: pa.Array | pa.ChunkedArray, separator: str | None) -> str:
    """Infer the kind of a column from its type; see `FeatureOptions`."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_list(kind):
        width_is_fixed = pa.types.is_fixed_size_list(kind) and not is_text(kind.value_type)
        return "vector" if width_is_fixed or pa.types.is_floating(kind.value_type) else "multi"
    if is_text(kind):
        return "categorical" if separator is None else "multi"
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return "categorical"
    return "numeric"


def fit_column(
    name: str, column: pa.Array | pa.ChunkedArray, options: FeatureOptions
) -> FeatureSpec:
    """Learn the encoding of a column from its training rows.

    Raises:
        DataError: The column does not hold what its kind needs.
    """
    kind = options.kind if options.kind != "auto" else infer_kind(column, options.separator)
    whole = whole_column(column)
    match kind:
        case "categorical":
            values = _frequent(as_text(name, whole).drop_null(), options)
            return FeatureSpec(name=name, kind=kind, size=1 + len(values), values=values)
        case "multi":
            values = _frequent(as_text(name, as_lists(name, whole, options.separator)[1]), options)
            size, separator = 1 + len(values), options.separator
            return FeatureSpec(name=name, kind=kind, size=size, values=values, separator=separator)
        case "numeric":
            return _fit_numeric(name, as_numbers(name, whole))
        case "bucket":
            return _fit_bucket(name, as_numbers(name, whole), options.num_buckets or 32)
        case "text":
            as_text(name, whole)  # refuses what is no text
            return FeatureSpec(name=name, kind=kind, size=options.num_buckets or 32768)
        case _:
            width = _vectors(name, whole, None).shape[1]
            return FeatureSpec(name=name, kind="vector", size=width)


def encode_column(spec: FeatureSpec, column: pa.Array | pa.ChunkedArray) -> NDArray[Any] | Ragged:
    """Encode a column; the forms are those of `FeatureTable`. One of Arrow's type null is missing.

    Raises:
        DataError: The column does not hold what the feature needs.
    """
    whole = whole_column(column)
    if pa.types.is_null(whole.type):
        return missing_column(spec, len(whole))
    match spec.kind:
        case "categorical":
            return _codes(spec, as_text(spec.name, whole)).astype(np.int32)
        case "multi":
            return _encode_multi(spec, whole)
        case "numeric":
            return _standardised(spec, as_numbers(spec.name, whole))
        case "bucket":
            values = as_numbers(spec.name, whole)
            buckets = 1 + np.searchsorted(np.array(spec.edges), values, side="right")
            return np.where(np.isnan(values), 0, buckets).astype(np.int32)
        case "text":
            return hash_texts(as_text(spec.name, whole), spec.size)
        case _:
            return _vectors(spec.name, whole, spec.size)


def missing_column(spec: FeatureSpec, num_rows: int) -> NDArray[Any] | Ragged:
    """Make a column in which every row is missing."""
    match spec.kind:
        case "multi" | "text":
            return Ragged(np.zeros(num_rows + 1, np.int64), np.zeros(0, np.int32))
        case "numeric":
            return np.full(num_rows, np.nan, np.float32)
        case "vector":
            return np.zeros((num_rows, spec.size), np.float32)
        case _:
            return np.zeros(num_rows, np.int32)


def _frequent(values: pa.Array, options: FeatureOptions) -> tuple[str, ...]:
    """Give the values that get a row: most frequent first, equal counts by value."""
    counts = pc.value_counts(values)
    table = pa.table({"value": counts.field(0), "count": counts.field(1)})
    table = table.filter(pc.greater_equal(table["count"], options.min_count))
    table = table.sort_by([("count", "descending"), ("value", "ascending")])
    kept = table.num_rows if options.max_vocabulary is None else options.max_vocabulary
    return tuple(table["value"].slice(0, kept).to_pylist())


def _codes(spec: FeatureSpec, values: pa.Array) -> NDArray[np.int64]:
    places = pc.index_in(values, value_set=spec.value_set)
    return 1 + np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), np.int64)


def _encode_multi(spec: FeatureSpec, column: pa.Array) -> Ragged:
    owners, values = as_lists(spec.name, column, spec.separator)
    codes = _codes(spec, as_text(spec.name, values))
    pairs = sorted_distinct(owners * spec.size + codes)  # a value counts once a row
    owners, codes = np.divmod(pairs, spec.size)
    counts = np.bincount(owners, minlength=len(column))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Ragged(offsets, codes.astype(np.int32))


def _fit_numeric(name: str, values: NDArray[np.float64]) -> FeatureSpec:
    known = values[~np.isnan(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
    if not np.isfinite([mean, scale]).all():
        raise _too_large(name, known)
    return FeatureSpec(name=name, kind="numeric", size=1, mean=mean, scale=scale or 1.0)


def _standardised(spec: FeatureSpec, values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        standardised = ((values - spec.mean) / spec.scale).astype(np.float32)
    beyond = np.isinf(standardised)
    if beyond.any():
        raise DataError(
            f"The feature column {spec.name!r} must hold numbers near those it was fitted on, "
            f"got {values[beyond][0]:g}."
        )
    return standardised


def _too_large(name: str, known: NDArray[np.float64]) -> DataError:
    """Name the number farthest from 0 of a column whose sums or differences overflow."""
    largest = known[np.argmax(np.abs(known))]
    return DataError(f"The feature column {name!r} holds numbers too large, such as {largest:g}.")


def _fit_bucket(name: str, values: NDArray[np.float64], num_buckets: int) -> FeatureSpec:
    known = values[~np.isnan(values)]
    shares = np.arange(1, num_buckets) / num_buckets
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.unique(np.quantile(known, shares)) if len(known) else np.zeros(0)
    if not np.isfinite(edges).all():
        raise _too_large(name, known)
    return FeatureSpec(
        name=name, kind="bucket", size=2 + len(edges), edges=tuple(map(float, edges))
    )


def _vectors(name: str, column: pa.Array, width: int | None) -> NDArray[np.float32]:
    """Give [N, V], float32, zeros where a row is null; V is `width`, or that of the rows."""
    if not is_list(column.type):
        raise DataError(f"The feature column {name!r} must hold lists, got {column.type}.")
    lengths = pc.list_value_length(column).drop_null().to_numpy()
    if width is None:
        if not len(lengths):
            raise DataError(f"The feature column {name!r} has no vector in any training row.")
        width = int(lengths[0])
    if (lengths != width).any():
        other = int(lengths[lengths != width][0])
        raise DataError(
            f"The feature column {name!r} must hold {width} numbers a row, got {other} in one row."
        )
    vectors = np.zeros((len(column), width), np.float32)
    numbers = _finite(name, pc.list_flatten(column))
    vectors[column.is_valid().to_numpy(zero_copy_only=False)] = numbers.reshape(-1, width)
    return vectors


def _finite(name: str, values: pa.Array) -> NDArray[np.float32]:
    """Give the numbers of vectors as float32; what is none there is refused."""
    try:
        numbers = np.asarray(values.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"The feature column {name!r} must hold numbers: {error}.") from error
    beyond = ~np.isfinite(numbers)
    if beyond.any():
        value = values[int(np.argmax(beyond))].as_py()
        raise DataError(
            f"The feature column {name!r} must hold finite numbers within float32, got {value}."
        )
    return numbers
