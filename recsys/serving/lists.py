"""Lists of rows, put together query by query.

Dimensions: B queries.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged


def with_empty_list(lists: Ragged) -> Ragged:
    """Add one empty list at the end, which position -1 then gives."""
    return Ragged(np.append(lists.offsets, lists.offsets[-1]), lists.rows)


def repeated(rows: NDArray[np.int64], num_lists: int) -> Ragged:
    """Make B lists of the same rows."""
    offsets = np.arange(num_lists + 1, dtype=np.int64) * len(rows)
    return Ragged(offsets, np.tile(rows, num_lists))


def concatenated(first: Ragged, second: Ragged) -> Ragged:
    """Put list b of the second behind list b of the first: B lists of int64."""
    owners = np.concatenate([first.owners(), second.owners()])
    rows = np.concatenate([first.rows, second.rows]).astype(np.int64)
    return Ragged.from_pairs(owners, rows, len(first))


def chosen(first: Ragged, second: Ragged, use_second: NDArray[np.bool_]) -> Ragged:
    """Take list b of the second where told so, else of the first: B lists of int64."""
    both = Ragged(
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.rows, second.rows]).astype(np.int64),
    )
    return both.take(np.arange(len(first)) + len(first) * use_second)
