"""Arrays in files that are mapped: more rows than are written at once, and other types."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from recsys.data.mapped_arrays import map_array, row_blocks, write_array


@given(num_rows=st.integers(0, 50), size=st.integers(1, 60))
def test_blocks_make_up_all_rows_in_order(num_rows: int, size: int) -> None:
    blocks = [list(range(num_rows))[rows] for rows in row_blocks(num_rows, size)]
    assert [row for block in blocks for row in block] == list(range(num_rows))
    assert all(len(block) == size for block in blocks[:-1])


@pytest.mark.parametrize("shape", [(3_000_000,), (700_000, 4), (0,)])
def test_any_number_of_rows_comes_back_in_the_type_asked_for(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    values = np.arange(np.prod(shape)).reshape(shape)
    write_array(tmp_path / "a.npy", values, np.int32)
    mapped = map_array(tmp_path / "a.npy", np.int32, *shape)
    assert_array_equal(mapped, values)
    assert mapped.dtype == np.int32
    assert_array_equal(np.load(tmp_path / "a.npy"), values)  # a plain file of NumPy


def test_columns_that_are_not_contiguous_are_written_as_they_read(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.float32).reshape(6, 4)[::-2, 1]
    write_array(tmp_path / "a.npy", values, np.float32)
    assert map_array(tmp_path / "a.npy", np.float32, None).tolist() == [21, 13, 5]
