"""Settings of a ridge part, by how well it does alone on validation.

Dimensions: B queries of a block, L items of a history, N items, K factors.
"""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation import EvaluationQueries, quick_metrics
from recsys.foundations import Progress
from recsys.index import ExactIndex
from recsys.models import ItemFactors, RidgePart, pad_histories
from recsys.training.validation import draw_choosers

log = logging.getLogger(__name__)

_ITERATIONS = 4  # tell settings apart: their order is that after many


class RidgeJudge:
    """Measures how well a ridge part ranks without towers beside it, as `Validator` measures.

    Args:
        dataset: Its validation part may be empty; then there is nothing to measure.
        history_length: Items of a history that count, the newest.
        k: List length.
        max_users: At most so many users, drawn by seed, and 2,000 in any case; None: those.
        seed: Of that draw.
        candidates: What is ranked: "all" or "cold", as in `evaluate_retrieval`.

    Raises:
        DataError: "cold", and no item of the validation part is.
    """

    def __init__(
        self,
        dataset: PreparedDataset,
        *,
        history_length: int,
        k: int,
        max_users: int | None,
        seed: int,
        candidates: str,
    ) -> None:
        self.k, self._history_length = k, history_length
        self._queries, self._ranked = draw_choosers(
            dataset, max_users, seed=seed, candidates=candidates
        )
        self._exclude_seen = dataset.exclude_seen
        self._trained = torch.from_numpy(dataset.items.counts[: dataset.num_items] > 0)

    def __len__(self) -> int:
        """Give the number of users."""
        return len(self._queries)

    def recall(self, part: RidgePart) -> float:
        """Compute the mean recall@k; there must be a user."""

        def embed(block: EvaluationQueries) -> NDArray[np.float32]:
            histories = torch.from_numpy(pad_histories(block.histories, self._history_length))
            known = (histories >= 0) & self._trained[histories.clamp(min=0)]
            vectors: NDArray[np.float32] = part.embed_histories(histories, known).numpy()
            return vectors

        metrics = quick_metrics(
            self._queries,
            embed=embed,
            exact=ExactIndex(part.embed_items(torch.arange(len(self._trained))).numpy()),
            ks=[self.k],
            exclude_seen=self._exclude_seen,
            ranked=self._ranked,
        )
        return metrics.get(f"recall_at_{self.k}", 0.0)  # none: nobody chose what is ranked


def choose_ridge(
    factors: ItemFactors,
    pairs: Sequence[tuple[float, float]],
    judge: RidgeJudge,
    iterations: int,
) -> tuple[float, float]:
    """Choose the regularization and the weight of what was not met.

    Each pair is fitted in 4 turns, which is enough to tell them apart, and judged.

    Args:
        factors: Are fitted with each pair.
        pairs: At least one.
        judge: Without a user it is the first pair that is taken, with a warning.
        iterations: More turns than these are not taken.

    Returns:
        The pair of the highest recall, the first of equal ones.
    """
    if len(judge) == 0:
        log.warning(
            "the validation part is empty: the ridge part takes the first of the listed settings"
        )
        return pairs[0]
    recalls = []
    with Progress("choosing the ridge part", len(pairs), "settings") as bar:
        for regularization, unobserved in pairs:
            fitted = factors.fit(
                regularization=regularization,
                unobserved=unobserved,
                iterations=min(iterations, _ITERATIONS),
            )
            part = RidgePart(
                *fitted.shape, regularization=regularization, unobserved=unobserved, scale=1.0
            )
            part.set_item_factors(fitted)
            recalls.append(judge.recall(part))
            bar.advance(1, f"recall@{judge.k} {recalls[-1]:.4f}")
    best = recalls.index(max(recalls))
    log.info(
        "ridge part: of %d pairs regularization %g and unobserved %g are the best on validation, "
        "recall@%d %.4f alone",
        len(pairs),
        *pairs[best],
        judge.k,
        recalls[best],
    )
    return pairs[best]
