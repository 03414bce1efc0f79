"""The context of events against rows taken from a table in one piece, and the memory it takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import FeatureOptions, FeatureSchema
from recsys.data.context_events import encode_context
from recsys.data.work_folder import work_folder
from recsys.foundations import Ragged

KINDS = {
    "place": FeatureOptions(kind="categorical"),
    "words": FeatureOptions(kind="multi"),
    "hour": FeatureOptions(kind="numeric"),
    "day": FeatureOptions(kind="bucket", num_buckets=4),
    "title": FeatureOptions(kind="text", num_buckets=16),
    "vector": FeatureOptions(kind="vector"),
}


def make_context(chunks: list[int]) -> pa.Table:
    """Make so many rows in each chunk, some without values."""
    rng, num_rows = np.random.default_rng(0), sum(chunks)
    letters = [list("abcd"[: rng.integers(0, 5)]) for _ in range(num_rows)]
    plain = {
        "place": ["".join(some) or None for some in letters],
        "words": letters,
        "hour": [None if number % 5 == 0 else number for number in range(num_rows)],
        "day": rng.normal(size=num_rows),
        "title": [f"{' '.join(some)} {number % 3}" for number, some in enumerate(letters)],
        "vector": pa.array(rng.normal(size=(num_rows, 2)).tolist(), pa.list_(pa.float32(), 2)),
    }
    table, ends = pa.table(plain), np.cumsum(chunks)
    parts = [table.slice(end - size, size) for end, size in zip(ends, chunks, strict=True)]
    return pa.concat_tables(parts) if parts else table


def plain(column: Any) -> list[Any]:
    if isinstance(column, Ragged):
        return [rows.tolist() for rows in np.split(column.rows, column.offsets[1:-1])]
    return list(np.nan_to_num(column, nan=-99).tolist())


@given(
    chunks=st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(sum),
    places=st.lists(st.floats(0, 1, exclude_max=True), max_size=20),
)
def test_rows_in_any_order_are_those_of_the_table(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[int], places: list[float]
) -> None:
    context = make_context(chunks)
    schema = FeatureSchema.fit(context, KINDS)
    rows = np.array([int(place * len(context)) for place in places], np.int64)
    wanted = schema.encode(context.combine_chunks().take(pa.array(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recsys.data.mapped_arrays.row_blocks.__defaults__", (7,))
        with work_folder(tmp_path_factory.mktemp("context") / "output") as work:
            found = encode_context(schema, context, rows, work)
            assert len(found) == len(rows)
            for name in KINDS:
                assert plain(found.columns[name]) == plain(wanted.columns[name])


@pytest.mark.parametrize("name", ["words", "title", "place"])
def test_a_few_rows_take_no_copy_of_the_whole_context(tmp_path: Path, name: str) -> None:
    context = make_context([500] * 40).select([name])
    schema = FeatureSchema.fit(context, {name: KINDS[name]})
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        with work_folder(tmp_path / "output") as work:
            encode_context(schema, context, np.array([19_999, 3, 7_000, 3]), work)
            peak = counted.max_memory()
    finally:
        pa.set_memory_pool(usual)
    assert 0 < peak < context.nbytes / 10
