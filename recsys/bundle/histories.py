"""What is known of each user when a bundle is written, and its files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data import PreparedDataset, join_histories
from recsys.foundations import FormatError, Ragged, map_npy

_OFFSETS, _ROWS, _TIMES = "history_offsets.npy", "history_rows.npy", "history_times.npy"


def known_histories(dataset: PreparedDataset) -> tuple[Ragged, Ragged | None]:
    """Collect each user's training and validation events, and the input parts of held-out users.

    The test part itself is left out, so that a bundle can be judged on it.

    Returns:
        One list a user row: candidates' rows, oldest first; of equal times, training comes first.
        As many lists of their times, in µs, or None where the data set's clock tells no time.
    """
    parts = (dataset.train, dataset.validation_input, dataset.validation, dataset.test_input)
    sources = [events for events in parts if events is not None and len(events)]
    return join_histories(sources, dataset.clock, len(dataset.users), dataset.num_items)


def write_histories(folder: Path, histories: Ragged, times: Ragged | None) -> None:
    """Write the lists as flat arrays; that of the times is empty where there are none."""
    stamps = np.zeros(0, np.int64) if times is None else times.rows.astype(np.int64, copy=False)
    np.save(folder / _OFFSETS, histories.offsets.astype(np.int64, copy=False), allow_pickle=False)
    np.save(folder / _ROWS, histories.rows.astype(np.int32, copy=False), allow_pickle=False)
    np.save(folder / _TIMES, stamps, allow_pickle=False)


def read_histories(
    folder: Path, *, num_users: int, num_items: int, clock: str
) -> tuple[Ragged, Ragged | None]:
    """Map the lists that `write_histories` wrote.

    Args:
        folder: The bundle.
        num_users: Lists that must be there.
        num_items: Every row must be below it.
        clock: With "time" there must be a time for each row, else none.

    Returns:
        Item rows, and their times or None.

    Raises:
        FormatError: A file is damaged or they do not belong together.
    """
    offsets, rows, times = (_read(folder / name) for name in (_OFFSETS, _ROWS, _TIMES))
    if offsets.shape != (num_users + 1,):
        raise FormatError(
            f"{folder / _OFFSETS} holds {len(offsets) - 1} histories, there are {num_users} users."
        )
    if offsets[0] != 0 or offsets[-1] != len(rows) or (np.diff(offsets) < 0).any():
        raise FormatError(f"{folder / _OFFSETS} does not divide {folder / _ROWS}.")
    if len(rows) and not 0 <= rows.min() <= rows.max() < num_items:
        raise FormatError(f"{folder / _ROWS} holds a row that is none of the {num_items} items.")
    wanted = len(rows) if clock == "time" else 0
    if len(times) != wanted:
        raise FormatError(f"{folder / _TIMES} holds {len(times)} times, there must be {wanted}.")
    bounds = np.asarray(offsets, np.int64)
    return Ragged(bounds, rows), Ragged(bounds, times) if clock == "time" else None


def _read(path: Path) -> NDArray[Any]:
    array = map_npy(path)
    if array.ndim != 1 or array.dtype.kind != "i":
        raise FormatError(f"{path} is damaged: it holds no list of integers.")
    return array
