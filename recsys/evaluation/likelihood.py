"""How probable a model makes what users chose, over the whole catalogue.

Dimensions: U queries, B queries of a block, M interests of a query, C candidates, D embedding
width.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.estimates import Estimate, Resampling
from recsys.evaluation.queries import EvaluationQueries
from recsys.metrics import log_likelihood, perplexity


@dataclass(frozen=True)
class CatalogueSoftmax:
    """What a model says of the next item: P(item | query) by a softmax over all candidates.

    Scores are inner products of the vectors, or of their first `dim` numbers (of a query with
    several interests the largest over them), divided by the temperature; nothing is left out as
    seen. What a ridge part adds in search stands behind the towers' numbers and is no
    log-probability; `dim` leaves it out. A loss whose optimum is score / temperature = log P + a
    constant (softmax in full, sampled or in the batch with log Q, noise-contrastive) trains this
    very distribution.

    Others do not. Without log Q (`log_q=none`), and by negative sampling, the scores tend to
    log(P / Q) + a constant: unless Q is uniform, popularity is taken out of them. BPR fixes no
    scale. The likelihood is exact then too, but of a distribution that the model was not trained
    to give: it compares epochs of one such model, not this model with another kind; recall does.

    Attributes:
        vectors: [C, D], float32; those of the candidates.
        temperature: The model's; above 0.
        dim: Numbers of a vector that count, the first ones; None: all.
    """

    vectors: NDArray[np.float32]
    temperature: float
    dim: int | None = None


class LikelihoodJudge:
    """Takes query vectors a block at a time and keeps two numbers a query.

    An event counts as often as it happened. Events of items that are no candidates have no
    probability: they are counted and not scored.

    Args:
        softmax: The model's distribution.

    Attributes:
        temperature: Of the softmax.
    """

    def __init__(self, softmax: CatalogueSoftmax) -> None:
        self._softmax, self.temperature = softmax, softmax.temperature
        self._sums: list[NDArray[np.float64]] = [np.zeros(0)]
        self._counts: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self._num_unknown = 0

    def add(self, block: EvaluationQueries, vectors: NDArray[np.float32]) -> None:
        """Score what a block chose, whose query vectors are [B, D] or [B, M, D]."""
        chosen, softmax = block.chosen, self._softmax
        values = log_likelihood(
            vectors[..., : softmax.dim],
            softmax.vectors[:, : softmax.dim],
            chosen,
            temperature=softmax.temperature,
        )
        scored = chosen.rows < len(softmax.vectors)
        owners, values = chosen.owners()[scored], values[scored]
        self._sums.append(np.bincount(owners, values, len(block)).astype(np.float64))
        self._counts.append(np.bincount(owners, minlength=len(block)).astype(np.int64))
        self._num_unknown += int((~scored).sum())

    def sums(self) -> NDArray[np.float64]:
        """Give the sum of log P over the scored events of each query, in nats: [U]."""
        return np.concatenate(self._sums)

    def counts(self) -> NDArray[np.int64]:
        """Give the number of scored events of each query: [U]."""
        return np.concatenate(self._counts)

    def event_counts(self) -> dict[str, int]:
        """Give `num_scored_events`, and `num_unknown_events` whose item is no candidate."""
        scored = int(self.counts().sum())
        return {"num_scored_events": scored, "num_unknown_events": self._num_unknown}

    def summary(self) -> dict[str, float]:
        """Give `log_likelihood` (nats, mean over the scored events), `perplexity`, and the counts.

        Without a scored event the counts stand alone. The perplexity is infinite where it is
        beyond what a float holds.
        """
        counts = self.event_counts()
        numbers: dict[str, float] = {}
        if counts["num_scored_events"]:
            mean = float(self.sums().sum()) / counts["num_scored_events"]
            numbers = {"log_likelihood": mean, "perplexity": perplexity(mean)}
        return numbers | counts

    def estimates(self, resampling: Resampling) -> dict[str, Estimate]:
        """Give `log_likelihood` and `perplexity` with intervals, users being drawn again.

        Empty without a scored event, or where the mean is not finite. A perplexity that is
        infinite, or whose interval is, is left out.
        """
        above, below = self.sums()[:, None], self.counts().astype(np.float64)[:, None]  # [U, 1]
        named: dict[str, Estimate] = resampling.ratios(["log_likelihood"], above, below)
        mean = named.get("log_likelihood")
        if mean is None or not math.isfinite(mean.value):
            return {}
        ends = [perplexity(x) for x in (mean.value, mean.high, mean.low) if x is not None]
        if all(math.isfinite(end) for end in ends):
            named["perplexity"] = Estimate(*ends)
        return named
