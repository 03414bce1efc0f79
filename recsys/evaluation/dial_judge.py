"""What the popularity dial does to a model's lists: recall against coverage.

Dimensions: U queries, B queries of a block, M interests of a query, D embedding width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.estimates import (
    Estimate,
    Resampling,
    intervals_of,
    plain_estimates,
    values_of,
)
from recsys.evaluation.measures import ListJudge
from recsys.evaluation.popularity import choose_lists
from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import Ragged
from recsys.index import OwnItems, PopularityDial, search_with_bonus
from recsys.metrics import mean_popularity_at_k, popularity_percentiles, top_k

_METRICS = ("recall", "ndcg", "mean_popularity", "popularity_percentile")


@dataclass(frozen=True, kw_only=True)
class DialPoint:
    """What one setting of the dial came to.

    Attributes:
        alpha: The setting; at 0 the lists are the model's own.
        metrics: `recall_at_10`, `ndcg_at_10`, `coverage_at_10`, `mean_popularity_at_10` (training
            events) and `popularity_percentile_at_10`.
        difference: Likewise, less those at 0, with paired intervals; empty at 0, without coverage.
    """

    alpha: float
    metrics: dict[str, Estimate]
    difference: dict[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """Give plain values for the report."""
        return {
            "alpha": self.alpha,
            "metrics": values_of(self.metrics),
            "intervals": intervals_of(self.metrics),
            "difference_to_0": {
                "metrics": values_of(self.difference),
                "intervals": intervals_of(self.difference),
            },
        }


class DialJudge:
    """Takes a model's query vectors a block at a time and judges the lists of each setting.

    Args:
        dial: Searches with the dial.
        alphas: Settings beside 0; each costs an exact search.
        k: Length of the list that is judged.
        counts: [N], training events of each candidate.
    """

    def __init__(
        self, dial: PopularityDial, alphas: Sequence[float], k: int, counts: NDArray[np.int64]
    ) -> None:
        self._dial, self._k = dial, k
        self._percentiles = popularity_percentiles(counts)
        self._judges = {alpha: ListJudge((k,), counts) for alpha in sorted({0.0, *alphas})}

    def add(
        self,
        block: EvaluationQueries,
        vectors: NDArray[np.float32],
        plain: Ragged,
        *,
        exclude: Ragged,
        own: OwnItems | None = None,
    ) -> None:
        """Judge a block.

        Args:
            block: B queries. Those of whom nothing is known keep the plain list at any setting.
            vectors: [B, D] or [B, M, D].
            plain: B lists, at least k long where there are so many: those without the dial.
            exclude: B lists of candidate rows that a query must not get.
            own: What is added to the scores of items that the users had; None: nothing.
        """
        unknown = block.nothing_known()
        for alpha, judge in self._judges.items():
            lists = plain
            if alpha != 0:
                search = partial(self._dial.search, alpha=alpha)
                hits = search_with_bonus(search, vectors, self._k, own, exclude=exclude)
                lists = choose_lists(hits.lists, plain, unknown)
            percentile = mean_popularity_at_k(lists, self._percentiles, self._k)
            judge.add(
                top_k(lists, self._k),
                block.truth,
                **{f"popularity_percentile_at_{self._k}": percentile},
            )

    def points(self, resampling: Resampling) -> list[DialPoint]:
        """Give what each setting came to, by rising alpha."""
        names = [f"{metric}_at_{self._k}" for metric in _METRICS]
        values = {
            alpha: {name: judge.values()[name] for name in names}
            for alpha, judge in self._judges.items()
        }
        return [
            DialPoint(
                alpha=alpha,
                metrics=resampling.means(values[alpha])
                | plain_estimates(self._judges[alpha].coverage()),
                difference={}
                if alpha == 0
                else resampling.means({n: values[alpha][n] - values[0.0][n] for n in names}),
            )
            for alpha in self._judges
        ]
