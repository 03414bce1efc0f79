"""Validation positives in equal shares of the popularity deciles."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation import EvaluationQueries, build_queries, popularity_deciles
from recsys.foundations import DataError, make_numpy_generator


@dataclass(frozen=True)
class ChosenPositives:
    """N positives of the validation part, each with the query that chose it.

    Attributes:
        queries: N queries; a user with several positives stands there several times.
        item_rows: [N], int64; candidates with training events.
        deciles: [N], 1 (least popular) to 10, of all candidates with training events.
        num_available: Positives that could have been chosen.
        num_unreachable: Positives left out: items that are no candidates or have no training
            events, so that a sampler by popularity gives them Q = 0.
    """

    queries: EvaluationQueries
    item_rows: NDArray[np.int64]
    deciles: NDArray[np.int64]
    num_available: int
    num_unreachable: int

    def __len__(self) -> int:
        return len(self.item_rows)

    def per_decile(self) -> NDArray[np.int64]:
        """Count the chosen positives of the deciles 1 to 10: [10], int64."""
        return np.bincount(self.deciles, minlength=11)[1:]

    def last_rows(self) -> NDArray[np.int64]:
        """Give the newest item of each query's history: [N], int64, -1 where there is none."""
        histories = self.queries.histories
        ends = histories.offsets[1:] - 1
        there = histories.lengths > 0
        last = np.full(len(histories), -1, np.int64)
        last[there] = histories.rows[ends[there]]
        return last


def choose_positives(dataset: PreparedDataset, num_positives: int, seed: int) -> ChosenPositives:
    """Choose validation positives so that every decile has as equal a share as the data allow.

    Args:
        dataset: The prepared data set.
        num_positives: Positives wanted; all are taken where there are no more.
        seed: Of the draws within a decile.

    Raises:
        DataError: The validation part is empty, or none of its items has training events.
    """
    queries = build_queries(dataset, "validation")
    rows, owners = queries.truth.rows, queries.truth.owners()
    deciles = np.zeros(len(rows), np.int64)
    inside = rows < dataset.num_items
    deciles[inside] = popularity_deciles(dataset.items.counts[: dataset.num_items])[rows[inside]]
    reachable = np.flatnonzero(deciles > 0)
    if len(rows) == 0:
        raise DataError(f"The validation part of {dataset.path} is empty: nothing to measure on.")
    if len(reachable) == 0:
        raise DataError(
            f"The validation part of {dataset.path} must hold an item with training events, got "
            f"{len(rows):,} positives without."
        )
    available = np.bincount(deciles[reachable], minlength=11)[1:]
    generator = make_numpy_generator(seed, "diagnosis", "positives")
    chosen = [
        generator.permutation(reachable[deciles[reachable] == decile + 1])[:quota]
        for decile, quota in enumerate(equal_quotas(available, num_positives))
    ]
    places = np.sort(np.concatenate(chosen))
    return ChosenPositives(
        queries=queries.take(owners[places]),
        item_rows=rows[places].astype(np.int64),
        deciles=deciles[places],
        num_available=len(reachable),
        num_unreachable=len(rows) - len(reachable),
    )


def equal_quotas(available: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Share out a total in equal parts; what a group lacks goes to the groups that have more.

    Args:
        available: [G], int64, the most that each group can take.
        total: To be shared out; more than there is gives all there is.

    Returns:
        [G], int64, sum min(total, sum of `available`); groups that are not exhausted differ by at
        most 1.
    """
    total = min(total, int(available.sum()))
    low, high = 0, int(available.max(initial=0))  # the level that groups are filled up to
    while low < high:
        middle = (low + high + 1) // 2
        fits = np.minimum(available, middle).sum() <= total
        low, high = (middle, high) if fits else (low, middle - 1)
    quotas = np.minimum(available, low)
    rest = total - int(quotas.sum())
    quotas[np.flatnonzero(available > low)[::-1][:rest]] += 1  # the last ones take the rest
    return quotas
