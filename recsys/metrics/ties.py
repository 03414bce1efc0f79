"""What equal scores do to a metric.

Dimensions: Q queries, C candidates.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, check_positive, check_shape


@dataclass(frozen=True)
class TiedRanks:
    """The ranks, from 1, that a query's one positive may take among equal scores.

    Attributes:
        optimistic: [Q], 1 + candidates that score higher.
        pessimistic: [Q], 1 + candidates that score higher or equal, the positive itself left out.
        by_row: [Q], the rank where equal scores are ordered by row; what a returned list has.
    """

    optimistic: NDArray[np.int64]
    pessimistic: NDArray[np.int64]
    by_row: NDArray[np.int64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Give the expected rank over all orders of the equal scores: [Q]."""
        return (self.optimistic + self.pessimistic) / 2


def tied_ranks(scores: NDArray[np.floating], positive_rows: NDArray[np.int64]) -> TiedRanks:
    """Rank each query's positive among all candidates.

    Args:
        scores: [Q, C], higher is better; -inf takes a candidate out.
        positive_rows: [Q], the column of the positive.

    Returns:
        The ranks, each [Q].

    Raises:
        ShapeError: `positive_rows` is not [Q].
    """
    check_shape("scores", scores, None, None)
    check_shape("positive_rows", positive_rows, len(scores))
    own = np.take_along_axis(scores, positive_rows[:, None], axis=1)  # [Q, 1]
    above = (scores > own).sum(axis=1)
    equal = scores == own  # [Q, C]
    before = equal & (np.arange(scores.shape[1])[None, :] < positive_rows[:, None])
    return TiedRanks(
        optimistic=above + 1,
        pessimistic=above + equal.sum(axis=1),
        by_row=above + before.sum(axis=1) + 1,
    )


def expected_over_ties(ranks: TiedRanks, k: int) -> dict[str, NDArray[np.float64]]:
    """Average hit rate, NDCG and MRR of the one positive over all orders of equal scores.

    Args:
        ranks: As `tied_ranks` gives them.
        k: Length of the list that is judged; at least 1.

    Returns:
        `hit_rate`, `ndcg` and `mrr`, each [Q], 0 to 1.

    Raises:
        ArgumentError: `k` is below 1.
    """
    check_positive("k", k)
    places = np.arange(1, k + 1)
    gains = {"hit_rate": np.ones(k), "ndcg": 1 / np.log2(places + 1), "mrr": 1 / places}
    size = ranks.pessimistic - ranks.optimistic + 1
    first, last = np.minimum(ranks.optimistic - 1, k), np.minimum(ranks.pessimistic, k)
    result = {}
    for name, gain in gains.items():
        total = np.concatenate([[0.0], np.cumsum(gain)])  # [k + 1]
        result[name] = (total[last] - total[first]) / size
    return result


def pessimistic_hits(
    hits: Ragged, scores: NDArray[np.floating], complete: NDArray[np.bool_]
) -> Ragged:
    """Move every hit behind the misses that have its score.

    Args:
        hits: Q lists of bool, as `relevance_of` gives them.
        scores: [offsets[-1]], aligned with the hits; never rising within a list.
        complete: [Q], whether the list ends because no candidate is left. Where it does not, more
            equal scores may stand behind its end, so that hits that score as its last entry are
            taken for misses.

    Returns:
        Q lists of bool, as long as before.
    """
    owners = hits.owners()
    order = np.lexsort((hits.rows, -scores.astype(np.float64), owners))
    moved = hits.rows[order]
    last = scores[np.maximum(hits.offsets[1:] - 1, 0)] if len(scores) else np.zeros(len(hits))
    open_end = (scores == last[owners]) & ~complete[owners]
    return Ragged(hits.offsets, moved & ~open_end)


def tied_at_k(lists: Ragged, scores: NDArray[np.floating], k: int) -> NDArray[np.bool_]:
    """Say whether the candidates at ranks k and k + 1 have one score.

    Args:
        lists: Q ranked lists; they must reach beyond k where candidates are left.
        scores: [offsets[-1]], aligned with the lists.
        k: At least 1.

    Returns:
        [Q], bool; false where the list has no more than k entries.

    Raises:
        ArgumentError: `k` is below 1.
    """
    check_positive("k", k)
    tied = np.zeros(len(lists), bool)
    long = np.flatnonzero(lists.lengths > k)
    cut = lists.offsets[long] + k
    tied[long] = scores[cut] == scores[cut - 1]
    return tied
