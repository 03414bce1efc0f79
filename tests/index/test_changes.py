"""Changes: what they must be, the way to files and back, and every damaged file refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, FormatError, ShapeError
from recsys.index import (
    CHANGES_FILES,
    ChangedVectors,
    Changes,
    read_changes,
    write_changes,
)

VECTORS, ROWS, WITHDRAWN = "changed_vectors.npy", "changed_rows.npy", "withdrawn_rows.npy"


def make_changes(**other: Any) -> Changes:
    """Give changes of an index of 10 vectors of width 3: two replaced, two added, two withdrawn."""
    given: dict[str, Any] = {
        "rows": np.array([2, 5, 10, 11]),
        "vectors": np.arange(12, dtype=np.float32).reshape(4, 3),
        "withdrawn": np.array([0, 11]),
        "num_candidates": 12,
    }
    return Changes(**given | other)


def test_come_back_as_they_were_written(tmp_path: Path) -> None:
    nothing = np.zeros(0, np.int64)
    only_withdrawn = Changes(nothing, np.zeros((0, 3), np.float32), np.array([3]), 10)
    for changes in (make_changes(), only_withdrawn, Changes.none(10, 3)):
        write_changes(tmp_path, changes)
        again = read_changes(tmp_path, 10, 3)
        assert again is not None
        assert np.array_equal(again.rows, changes.rows)
        assert np.array_equal(again.vectors, changes.vectors)
        assert again.vectors.dtype == np.float32
        assert np.array_equal(again.withdrawn, changes.withdrawn)
        assert again.num_candidates == changes.num_candidates
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(CHANGES_FILES)


def test_an_unchanged_index_has_no_files(tmp_path: Path) -> None:
    assert read_changes(tmp_path, 10, 3) is None


@pytest.mark.parametrize("name", [VECTORS, ROWS, WITHDRAWN])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    write_changes(tmp_path, make_changes())
    (tmp_path / name).unlink()
    with pytest.raises(FormatError, match=rf"{name} is missing, but \w+\.npy stands beside it"):
        read_changes(tmp_path, 10, 3)


@pytest.mark.parametrize("name", [VECTORS, ROWS, WITHDRAWN])
def test_a_truncated_or_foreign_file_is_named(name: str, tmp_path: Path) -> None:
    write_changes(tmp_path, make_changes())
    whole = (tmp_path / name).read_bytes()
    for content in (b"", whole[:60], whole[:-1], b"x" * 300):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=rf"{name} is damaged"):
            read_changes(tmp_path, 10, 3)
    np.save(tmp_path / name, np.array([{}], object), allow_pickle=True)
    with pytest.raises(FormatError, match=rf"{name} is damaged"):
        read_changes(tmp_path, 10, 3)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises((FormatError, FileNotFoundError), match=name):
        read_changes(tmp_path, 10, 3)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (ROWS, np.array([2, 5, 10, 11], np.int32), f"{ROWS} is damaged: it holds no int64 rows"),
        (ROWS, np.array([[2, 5, 10, 11]]), f"{ROWS} is damaged: it holds no int64 rows"),
        (ROWS, np.array([5, 2, 10, 11]), f"{ROWS} is damaged: it must hold rising rows"),
        (ROWS, np.array([2, 2, 10, 11]), f"{ROWS} is damaged: it must hold rising rows"),
        (ROWS, np.array([-1, 5, 10, 11]), f"{ROWS} is damaged: it must hold rows from 0 to 11"),
        (ROWS, np.array([2, 10, 11]), f"{VECTORS} holds 4 vectors of width 3, {ROWS} and"),
        (ROWS, np.array([2, 5, 10, 12]), f"{ROWS} holds 2 of the 3 rows from 10 to 12"),
        (WITHDRAWN, np.array([0, 12]), f"{WITHDRAWN} is damaged: it must hold rows from 0 to 11"),
        (WITHDRAWN, np.array([3, 1]), f"{WITHDRAWN} is damaged: it must hold rising rows"),
        (VECTORS, np.zeros((4, 2), np.float32), f"{VECTORS} holds 4 vectors of width 2"),
        (VECTORS, np.zeros((4, 3)), f"{VECTORS} is damaged: it holds no float32 vectors"),
        (
            VECTORS,
            np.full((4, 3), np.nan, np.float32),
            rf"{VECTORS} is damaged: `vectors` must be finite, row 0 is not",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(
    name: str, content: NDArray[Any], words: str, tmp_path: Path
) -> None:
    write_changes(tmp_path, make_changes())
    np.save(tmp_path / name, content)
    with pytest.raises(FormatError, match=words):
        read_changes(tmp_path, 10, 3)


def test_changes_of_a_larger_index_are_refused(tmp_path: Path) -> None:
    write_changes(tmp_path, make_changes())
    with pytest.raises(FormatError, match=r"changed_rows\.npy holds 2 of the 3 rows from 9 to 11"):
        read_changes(tmp_path, 9, 3)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: make_changes(rows=np.array([2, 5, 10])), ShapeError, r"\[3, any\], got \[4, 3\]"),
        (
            lambda: make_changes(rows=np.array([2, 10, 5, 11])),
            ArgumentError,
            "`rows` must hold ri",
        ),
        (lambda: make_changes(num_candidates=11), ArgumentError, "`rows` must hold rows from 0 to"),
        (
            lambda: make_changes(withdrawn=np.array([12])),
            ArgumentError,
            "`withdrawn` must hold ro",
        ),
        (lambda: make_changes(withdrawn=np.zeros(1)), ArgumentError, "`withdrawn` must hold int64"),
        (lambda: make_changes(vectors=np.zeros((4, 3))), ArgumentError, "must be float32, got flo"),
        (
            lambda: make_changes(vectors=np.full((4, 3), np.inf, np.float32)),
            ArgumentError,
            "`vectors` must be finite, row 0 is not",
        ),
    ],
)
def test_refuse_what_is_not_a_change(
    make: Callable[[], Changes], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_their_vectors_are_read_as_an_array_is() -> None:
    main, changes = np.full((10, 3), -1, np.float32), make_changes()
    whole = np.full((12, 3), -1, np.float32)
    whole[[2, 5, 10, 11]] = np.arange(12).reshape(4, 3)
    vectors = ChangedVectors(main, changes)
    assert vectors.shape == whole.shape
    assert (len(vectors), vectors.size, vectors.ndim, vectors.dtype) == (12, 36, 2, whole.dtype)
    rising, mask = np.arange(12), np.arange(12) % 3 == 2
    ends = [(None,), (3, 11), (9, 12), (8, 3), (None, None, -2), (2, 9, 3)]
    for rows in (
        *(slice(*end) for end in ends),
        *(0, 5, 11, -1, -10, np.int64(10)),
        *(rising[::-1], np.array([5, 5, -2], np.int32), [2, 10], [], rising.reshape(3, 4), mask),
    ):
        assert np.array_equal(vectors[rows], whole[rows])
        assert vectors[rows].dtype == np.float32
    assert np.array_equal(np.asarray(vectors), whole)
    assert np.asarray(vectors, np.float64).dtype == np.float64
    assert np.array_equal(np.array(list(vectors)), whole)
    assert [len(block) for block in vectors.blocks(5)] == [5, 5, 2]
    assert (main == -1).all()


def test_their_vectors_refuse_rows_that_an_array_refuses() -> None:
    vectors = ChangedVectors(np.zeros((10, 3), np.float32), make_changes())
    for rows in (12, -13, [0, 12], np.array([0.5]), np.ones(3, np.bool_)):
        with pytest.raises(IndexError, match=r"rows|mask"):
            vectors[rows]
    with pytest.raises(ValueError, match="an array of them is a copy"):
        np.asarray(vectors, copy=False)
