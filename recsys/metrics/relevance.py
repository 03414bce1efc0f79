"""Where the relevant candidates stand in ranked lists; what every ranking metric starts from."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, ShapeError, is_among

_ROWS_AT_ONCE = 2**20  # a number of 8 bytes a row, several times over


def distinct(lists: Ragged) -> Ragged:
    """Keep the first occurrence of each candidate in each list, in the list's order.

    Args:
        lists: Q lists of candidate rows, int64, from 0.

    Returns:
        Q lists without repeats.
    """
    width = _width(lists)
    kept, counts = np.zeros(len(lists.rows), bool), np.zeros(len(lists), np.int64)
    for start, stop in _blocks(lists):
        block = lists.slice(start, stop)
        first = _first_occurrences(_pair_keys(block, width))
        kept[lists.offsets[start] : lists.offsets[stop]] = first
        counts[start:stop] = np.bincount(block.owners()[first], minlength=len(block))
    return Ragged(_offsets(counts), lists.rows[kept])


def relevance_of(lists: Ragged, truth: Ragged) -> Ragged:
    """Mark the places of a ranked list that hold a relevant candidate.

    A candidate that stands in a list several times counts at its first place only; the later
    places stay occupied, so that a repeat never raises a metric.

    Args:
        lists: Q ranked lists of candidate rows, best first, int64, from 0.
        truth: Q lists of relevant rows, int64, from 0; repeats count once.

    Returns:
        Q lists, aligned with `lists`, of bool.

    Raises:
        ShapeError: The numbers of lists differ.
    """
    _check_aligned(lists, truth)
    width = max(_width(lists), _width(truth))
    keys = _pair_keys(lists, width)
    hits = is_among(keys, _pair_keys(truth, width)) & _first_occurrences(keys)
    return Ragged(lists.offsets, hits)


def ranks_of(lists: Ragged, truth: Ragged) -> Ragged:
    """Give the place of each relevant candidate in its query's list.

    Args:
        lists: Q ranked lists of candidate rows, best first, int64, from 0.
        truth: Q lists of relevant rows, int64, from 0.

    Returns:
        Q lists, aligned with `truth`, of float64 ranks from 1; infinity where a relevant candidate
        is not in the list.

    Raises:
        ShapeError: The numbers of lists differ.
    """
    _check_aligned(lists, truth)
    width = max(_width(lists), _width(truth))
    keys, first = np.unique(_pair_keys(lists, width), return_index=True)
    wanted = _pair_keys(truth, width)
    ranks = np.full(len(wanted), np.inf)
    if len(keys):
        nearest = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        found = keys[nearest] == wanted
        ranks[found] = (positions_in(lists)[first[nearest]] + 1)[found]
    return Ragged(truth.offsets, ranks)


def num_relevant_of(truth: Ragged) -> NDArray[np.int64]:
    """Count the distinct relevant candidates of each query: [Q], int64."""
    return distinct(truth).lengths


def positions_in(lists: Ragged) -> NDArray[np.int64]:
    """Give each entry's place in its list, from 0: [offsets[-1]], int64."""
    return np.arange(lists.offsets[-1]) - np.repeat(lists.offsets[:-1], lists.lengths)


def _blocks(lists: Ragged) -> Iterator[tuple[int, int]]:
    """Give ranges of lists that hold so many rows together as are worked on at once."""
    start = 0
    while start < len(lists):
        most = lists.offsets[start] + _ROWS_AT_ONCE
        stop = max(int(np.searchsorted(lists.offsets, most, side="right")) - 1, start + 1)
        yield start, stop
        start = stop


def _pair_keys(lists: Ragged, width: int) -> NDArray[np.int64]:
    """Give one number to each (query, candidate) pair."""
    return lists.owners() * width + lists.rows.astype(np.int64)


def _width(lists: Ragged) -> int:
    return int(lists.rows.max(initial=0)) + 1


def _first_occurrences(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _check_aligned(lists: Ragged, truth: Ragged) -> None:
    if len(lists) != len(truth):
        raise ShapeError(f"`truth` must have {len(lists)} lists as `lists` has, got {len(truth)}.")
