"""Settings of a ridge part, by how well it does alone on validation.

Dimensions: K factors.
"""

import itertools
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from recsys.data import PreparedDataset
from recsys.foundations import Progress
from recsys.models import ItemFactors, RidgePart, pad_histories
from recsys.training.score_blocks import ndcg_of_scores, score_blocks
from recsys.training.validation import draw_choosers

log = logging.getLogger(__name__)

_ITERATIONS = 4  # tell settings apart: their order is that after many


class RidgeSettings(NamedTuple):
    """What a ridge part is fitted with.

    Attributes:
        dim: K.
        regularization: Above 0.
        unobserved: Weight of what was not met, above 0.
    """

    dim: int
    regularization: float
    unobserved: float


class RidgeJudge:
    """Measures how well a ridge part ranks without towers beside it, as `Validator` measures.

    Args:
        dataset: Its validation part may be empty; then there is nothing to measure.
        history_length: Items of a history that count, the newest.
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
        max_users: int | None,
        seed: int,
        candidates: str,
    ) -> None:
        self._history_length = history_length
        self._queries, self._ranked = draw_choosers(
            dataset, max_users, seed=seed, candidates=candidates
        )
        self._exclude_seen = dataset.exclude_seen
        self._trained = torch.from_numpy(dataset.items.counts[: dataset.num_items] > 0)

    def __len__(self) -> int:
        """Give the number of users."""
        return len(self._queries)

    @property
    def ranks_cold_items(self) -> bool:
        """Whether items without training events alone are ranked, which all have zeros."""
        return self._ranked.rule == "cold"

    @property
    def k(self) -> int:
        """Give the length of the lists: 100, or the number of items where that is less."""
        return self._ranked.choice_k

    def ndcg(self, part: RidgePart) -> float:
        """Compute the mean NDCG@k over the whole catalogue; there must be a user."""
        items, total = part.embed_items(torch.arange(len(self._trained))), 0.0
        for block in score_blocks(self._queries, len(items)):
            histories = torch.from_numpy(pad_histories(block.histories, self._history_length))
            known = (histories >= 0) & self._trained[histories.clamp(min=0)]
            scores = part.embed_histories(histories, known) @ items.T
            total += float(ndcg_of_scores(scores, block, exclude_seen=self._exclude_seen).sum())
        return total / len(self)


def choose_ridge(
    factors_of: Callable[[int], ItemFactors],
    listed: Sequence[RidgeSettings],
    judge: RidgeJudge,
    iterations: int,
) -> RidgeSettings:
    """Choose the width, the regularization and the weight of what was not met.

    Each is fitted in 4 turns, which is enough to tell them apart, and judged.

    Args:
        factors_of: Gives unfitted factors of a width; is asked once for each width in a row.
        listed: At least one.
        judge: Without a user, or where it ranks nothing that a ridge part knows, it is the first
            that is taken.
        iterations: More turns than these are not taken.

    Returns:
        Those of the highest NDCG@100, the first of equal ones.
    """
    if len(judge) == 0:
        log.warning(
            "the validation part is empty: the ridge part takes the first of the listed settings"
        )
        return listed[0]
    if judge.ranks_cold_items:
        log.info(
            "the ridge part knows nothing of cold items: it takes the first of the listed settings"
        )
        return listed[0]
    values = []
    with Progress("choosing the ridge part", len(listed), "settings") as bar:
        for dim, group in itertools.groupby(listed, key=lambda settings: settings.dim):
            factors = factors_of(dim)
            for settings in group:
                values.append(judge.ndcg(_fitted(factors, settings, min(iterations, _ITERATIONS))))
                bar.advance(1, f"NDCG@{judge.k} {values[-1]:.4f}")
    best = listed[values.index(max(values))]
    log.info(
        "ridge part: of %d settings dim %d, regularization %g and unobserved %g are the best on "
        "validation, NDCG@%d %.4f alone",
        len(listed),
        *best,
        judge.k,
        max(values),
    )
    return best


def _fitted(factors: ItemFactors, settings: RidgeSettings, iterations: int) -> RidgePart:
    _, regularization, unobserved = settings
    fitted = factors.fit(
        regularization=regularization, unobserved=unobserved, iterations=iterations
    )
    part = RidgePart(*fitted.shape, regularization=regularization, unobserved=unobserved, scale=1.0)
    part.set_item_factors(fitted)
    return part
