"""What lists show of the catalogue: how much of it, and how popular that is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, check_positive, is_among
from recsys.metrics.ranking import top_k
from recsys.metrics.ratio import divide_where_defined


def coverage_at_k(lists: Ragged, num_candidates: int, k: int) -> float:
    """Compute distinct candidates in anyone's top k / candidates in the catalogue.

    Args:
        lists: Q ranked lists of candidate rows in [0, num_candidates).
        num_candidates: Size of the catalogue; at least 1.
        k: Length of the list that is judged; at least 1.

    Returns:
        0 to 1.

    Raises:
        ArgumentError: A number is below 1.
    """
    check_positive("num_candidates", num_candidates)
    shown = np.zeros(num_candidates, bool)
    shown[top_k(lists, k).rows] = True
    return float(shown.mean())


def mean_popularity_at_k(lists: Ragged, counts: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Compute the mean training count of the candidates in each top k.

    Args:
        lists: Q ranked lists of candidate rows.
        counts: [C], events of each candidate in the training part; or popularity by another
            measure, whose unit the result then has.
        k: Length of the list that is judged; at least 1.

    Returns:
        [Q], in events; NaN where a list is empty.

    Raises:
        ArgumentError: `k` is below 1.
    """
    top = top_k(lists, k)
    total = np.bincount(top.owners(), weights=counts[top.rows], minlength=len(top))
    return divide_where_defined(total, top.lengths)


def overlap_at_k(lists: Ragged, reference: Ragged, k: int) -> NDArray[np.float64]:
    """Compute the part of each reference top k that the other top k also holds, in any order.

    With exact search as the reference this is `index_recall_at_k`.

    Args:
        lists: Q lists of distinct candidate rows.
        reference: Q lists of distinct candidate rows.
        k: Length of the lists that are judged; at least 1.

    Returns:
        [Q], 0 to 1; divided by the reference's length where that is shorter than k; NaN where the
        reference is empty.

    Raises:
        ArgumentError: `k` is below 1.
    """
    found, wanted = top_k(lists, k), top_k(reference, k)
    width = int(max(found.rows.max(initial=0), wanted.rows.max(initial=0))) + 1
    common = is_among(wanted.owners() * width + wanted.rows, found.owners() * width + found.rows)
    total = np.bincount(wanted.owners()[common], minlength=len(wanted))
    return divide_where_defined(total, wanted.lengths)
