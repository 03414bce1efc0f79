"""How probable a model makes what users chose, over the whole catalogue.

Dimensions: U queries, B queries of a block, C candidates, D embedding width.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.queries import EvaluationQueries
from recsys.metrics import log_likelihood, perplexity


@dataclass(frozen=True)
class CatalogueSoftmax:
    """What a model says of the next item: P(item | query) by a softmax over all candidates.

    Scores are those of search, inner products of the vectors, divided by the temperature; nothing
    is left out as seen. Losses whose optimum is score / temperature = log P + a constant (full
    softmax; sampled, in-batch and importance-sampled with log Q) train this very distribution.
    Others do not: without log Q (`log_q=none`) and by negative sampling the scores tend to
    log(P / Q) + a constant, which takes the popularity out of them, and BPR fixes no scale at all.
    The likelihood is exact then too, but of scores that were never meant as log P: it compares
    epochs of one such model, not that model with another kind; recall does.

    Attributes:
        vectors: [C, D], float32; those of the candidates.
        temperature: The model's; above 0.
    """

    vectors: NDArray[np.float32]
    temperature: float


class LikelihoodJudge:
    """Takes query vectors a block at a time and keeps two numbers a query.

    An event counts as often as it happened. Events of items that are no candidates have no
    probability: they are counted and not scored.

    Args:
        softmax: The model's distribution.

    Attributes:
        num_unknown_events: Events so far whose item is no candidate.
    """

    def __init__(self, softmax: CatalogueSoftmax) -> None:
        self._softmax = softmax
        self._sums: list[NDArray[np.float64]] = [np.zeros(0)]
        self._counts: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self.num_unknown_events = 0

    def add(self, block: EvaluationQueries, vectors: NDArray[np.float32]) -> None:
        """Score what a block chose, whose query vectors are [B, D]."""
        chosen, softmax = block.chosen, self._softmax
        values = log_likelihood(vectors, softmax.vectors, chosen, temperature=softmax.temperature)
        scored = chosen.rows < len(softmax.vectors)
        owners, values = chosen.owners()[scored], values[scored]
        self._sums.append(np.bincount(owners, values, len(block)).astype(np.float64))
        self._counts.append(np.bincount(owners, minlength=len(block)).astype(np.int64))
        self.num_unknown_events += int((~scored).sum())

    def sums(self) -> NDArray[np.float64]:
        """Give the sum of log P over the scored events of each query, in nats: [U]."""
        return np.concatenate(self._sums)

    def counts(self) -> NDArray[np.int64]:
        """Give the number of scored events of each query: [U]."""
        return np.concatenate(self._counts)

    def summary(self) -> dict[str, float]:
        """Give `log_likelihood` (nats, mean over the scored events), `perplexity`, and the counts.

        The counts are `num_scored_events` and `num_unknown_events`. Without a scored event they
        stand alone. The perplexity is infinite where it is beyond what a float holds.
        """
        num_scored = int(self.counts().sum())
        numbers: dict[str, float] = {}
        if num_scored:
            mean = float(self.sums().sum()) / num_scored
            numbers = {"log_likelihood": mean, "perplexity": perplexity(mean)}
        return numbers | {
            "num_scored_events": num_scored,
            "num_unknown_events": self.num_unknown_events,
        }
