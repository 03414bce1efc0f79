"""The saved form of changes: three `.npy` files beside the main index's.

Dimensions: N candidates of the main index, C of the catalogue after the changes, n changed rows,
D embedding width.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, FormatError, atomic_file, map_npy
from recsys.index.changes import Changes, check_rows
from recsys.index.saved import read_vectors, write_vectors
from recsys.index.scoring import check_finite

VECTORS_FILE, ROWS_FILE = "changed_vectors.npy", "changed_rows.npy"
WITHDRAWN_FILE = "withdrawn_rows.npy"
CHANGES_FILES = (VECTORS_FILE, ROWS_FILE, WITHDRAWN_FILE)


def write_changes(folder: Path, changes: Changes) -> None:
    """Write the three files of the changes, each atomically."""
    write_vectors(folder / VECTORS_FILE, changes.vectors)
    for name, rows in ((ROWS_FILE, changes.rows), (WITHDRAWN_FILE, changes.withdrawn)):
        with atomic_file(folder / name) as temporary, temporary.open("wb") as file:
            np.save(file, rows, allow_pickle=False)


def read_changes(folder: Path, main_count: int, dim: int) -> Changes | None:
    """Read what `write_changes` wrote; the vectors are mapped, and read once to check them.

    Args:
        folder: Where the files lie.
        main_count: N, candidates of the main index.
        dim: D.

    Returns:
        The changes; C follows from N and the rows. None where the folder holds none of the files.

    Raises:
        FormatError: A file is damaged, is missing beside the others, or does not belong to them or
            to the main index; the message names it.
    """
    there = [name for name in CHANGES_FILES if (folder / name).exists()]
    if not there:
        return None
    for name in CHANGES_FILES:
        if name not in there:
            raise FormatError(f"{folder / name} is missing, but {there[0]} stands beside it.")
    rows, withdrawn = _read_rows(folder / ROWS_FILE), _read_rows(folder / WITHDRAWN_FILE)
    num_candidates = max(main_count, int(rows.max(initial=-1)) + 1)
    _check(folder / ROWS_FILE, rows, num_candidates)
    _check(folder / WITHDRAWN_FILE, withdrawn, num_candidates)
    added = len(rows) - int(np.searchsorted(rows, main_count))
    if added != num_candidates - main_count:
        raise FormatError(
            f"{folder / ROWS_FILE} holds {added} of the {num_candidates - main_count} rows from "
            f"{main_count} to {num_candidates - 1}, which the main index lacks: they do not belong "
            "together."
        )
    vectors = _read_vectors(folder / VECTORS_FILE, len(rows), dim)
    return Changes(rows, vectors, withdrawn, num_candidates)


def _read_vectors(path: Path, count: int, dim: int) -> NDArray[np.float32]:
    vectors = read_vectors(path)
    if vectors.shape != (count, dim):
        raise FormatError(
            f"{path} holds {vectors.shape[0]} vectors of width {vectors.shape[1]}, {ROWS_FILE} and "
            f"the main index ask for {count} of width {dim}: they do not belong together."
        )
    try:
        check_finite("vectors", vectors)
    except ArgumentError as error:
        raise FormatError(f"{path} is damaged: {error}") from error
    return vectors


def _check(path: Path, rows: NDArray[np.int64], num_candidates: int) -> None:
    try:
        check_rows("it", rows, num_candidates)
    except ArgumentError as error:
        raise FormatError(f"{path} is damaged: {error}") from error


def _read_rows(path: Path) -> NDArray[np.int64]:
    rows = map_npy(path)
    if rows.ndim != 1 or rows.dtype != np.int64:
        raise FormatError(f"{path} is damaged: it holds no int64 rows.")
    return rows
