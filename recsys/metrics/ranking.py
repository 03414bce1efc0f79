"""Metrics of ranked lists, one value a query.

Dimensions: Q queries; each has a ranked list of its own length.

All take `hits` as `relevance_of` gives it: Q lists of bool, best place first. A list shorter than k
is used as it is; its missing places are misses. Metrics that divide by the number of relevant
candidates are undefined, hence NaN, for a query that has none; the others are 0 there.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, check_positive, check_shape
from recsys.metrics.ratio import divide_where_defined
from recsys.metrics.relevance import positions_in


def recall_at_k(hits: Ragged, num_relevant: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Compute relevant candidates in the top k / all relevant candidates.

    Args:
        hits: Q lists of bool.
        num_relevant: [Q], distinct relevant candidates, also those that no list holds.
        k: Length of the list that is judged; at least 1.

    Returns:
        [Q], 0 to 1; NaN where nothing is relevant. With more than k relevant candidates 1 is out
        of reach; `capped_recall_at_k` is the form without that.

    Raises:
        ShapeError: `num_relevant` is not [Q].
        ArgumentError: `k` is below 1.
    """
    return divide_where_defined(_hits_at_k(hits, k), _checked(num_relevant, hits))


def capped_recall_at_k(
    hits: Ragged, num_relevant: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Compute relevant candidates in the top k / min(k, all relevant candidates).

    Arguments, result and errors as for `recall_at_k`.
    """
    return divide_where_defined(_hits_at_k(hits, k), np.minimum(_checked(num_relevant, hits), k))


def precision_at_k(hits: Ragged, k: int) -> NDArray[np.float64]:
    """Compute relevant candidates in the top k / k, also where the list is shorter than k.

    Args:
        hits: Q lists of bool.
        k: Length of the list that is judged; at least 1.

    Returns:
        [Q], 0 to 1.

    Raises:
        ArgumentError: `k` is below 1.
    """
    return _hits_at_k(hits, k) / k


def hit_rate_at_k(hits: Ragged, k: int) -> NDArray[np.float64]:
    """Say whether the top k hold any relevant candidate; otherwise as `precision_at_k`."""
    return (_hits_at_k(hits, k) > 0).astype(np.float64)


def mrr_at_k(hits: Ragged, k: int) -> NDArray[np.float64]:
    """Compute 1 / rank of the first relevant candidate, 0 if it stands behind k.

    Arguments, result and errors as for `precision_at_k`.
    """
    owners, positions = _places_of_hits(hits, k)
    best = np.zeros(len(hits))
    np.maximum.at(best, owners, 1 / (positions + 1))
    return best


def ndcg_at_k(hits: Ragged, num_relevant: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Compute the discounted gain of the top k / that of the best possible top k.

    Gain 1 for a relevant candidate, discount 1 / log2(rank + 1); the best list has
    min(k, num_relevant) relevant candidates in front. Arguments, result and errors as for
    `recall_at_k`.
    """
    num_relevant = _checked(num_relevant, hits)
    owners, positions = _places_of_hits(hits, k)
    gain = np.bincount(owners, weights=1 / np.log2(positions + 2), minlength=len(hits))
    possible = np.minimum(num_relevant, k)
    best = np.append(0.0, np.cumsum(1 / np.log2(np.arange(possible.max(initial=0)) + 2)))
    return divide_where_defined(gain, best[possible])


def map_at_k(hits: Ragged, num_relevant: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Compute the average precision of the top k, whose mean over queries is MAP@k.

    The sum of precision@r over the ranks r <= k of relevant candidates / min(k, num_relevant).
    Arguments, result and errors as for `recall_at_k`.
    """
    num_relevant = _checked(num_relevant, hits)
    owners, positions = _places_of_hits(hits, k)
    # The hits stand in order, so that a hit's number within its list is its distance from the
    # first hit of that list.
    nth = np.arange(len(owners)) - np.searchsorted(owners, owners) + 1
    total = np.bincount(owners, weights=nth / (positions + 1), minlength=len(hits))
    return divide_where_defined(total, np.minimum(num_relevant, k))


def _places_of_hits(hits: Ragged, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give query and place (from 0) of each hit in the top k, in the order of the lists."""
    check_positive("k", k)
    where = np.flatnonzero(hits.rows)
    owners = np.searchsorted(hits.offsets, where, side="right") - 1
    positions = where - hits.offsets[owners]
    return owners[positions < k], positions[positions < k]


def _hits_at_k(hits: Ragged, k: int) -> NDArray[np.float64]:
    owners, _ = _places_of_hits(hits, k)
    return np.bincount(owners, minlength=len(hits)).astype(np.float64)


def _checked(num_relevant: NDArray[np.int64], hits: Ragged) -> NDArray[np.int64]:
    check_shape("num_relevant", num_relevant, len(hits))
    return num_relevant


def top_k(lists: Ragged, k: int) -> Ragged:
    """Cut every list after its first k entries.

    Args:
        lists: Q lists of anything.
        k: At least 1.

    Returns:
        Q lists of at most k entries.

    Raises:
        ArgumentError: `k` is below 1.
    """
    check_positive("k", k)
    offsets = np.concatenate([[0], np.cumsum(np.minimum(lists.lengths, k))]).astype(np.int64)
    return Ragged(offsets, lists.rows[positions_in(lists) < k])
