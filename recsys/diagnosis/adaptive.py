"""Importance sampling whose sample grows until it is worth enough."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from recsys.diagnosis.candidates import Candidates, LossInputs
from recsys.diagnosis.row_losses import importance
from recsys.diagnosis.subject import Subject
from recsys.losses import grow_sample
from recsys.sampling import Proposal


class AdaptiveImportance:
    """Draw blocks shared by the rows until the effective sample size is that of the setting.

    A block holds as many draws as are to be reached, so that one block is enough where proposal
    and softmax agree. A row that is still short when a further block would pass the size of the
    catalogue takes the full softmax.

    Args:
        proposal: Where candidates come from.
        ess_quantile: Share of the rows, in [0, 1), that may stay short without another block.
    """

    def __init__(self, proposal: Proposal, *, ess_quantile: float) -> None:
        self._proposal, self._ess_quantile = proposal, ess_quantile

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Grow the sample; `size` is the effective sample size that is asked for."""
        blocks: list[Tensor] = []

        def grow() -> Iterator[Tensor]:
            while True:
                rows = self._proposal.draw(size, generator)
                blocks.append(rows)
                logits = subject.scores_of(rows) / subject.temperature
                yield logits - self._proposal.log_probability(rows).to(logits)  # [N, size]

        grown = grow_sample(
            grow(),
            min_ess=size,
            max_samples=max(subject.num_items, size),
            ess_quantile=self._ess_quantile,
        )
        rows = torch.cat(blocks)[: grown.num_samples]
        log_count = math.log(grown.num_samples)
        short = ~grown.reached
        return Candidates(
            rows=rows,
            num_draws=grown.num_samples,
            log_q=(self._proposal.log_probability(rows) + log_count).float(),
            exact_rows=short,
            facts={"full_softmax_share": float(short.float().mean())},
        )

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give the loss of each row, as if its sample were enough."""
        return importance(inputs, candidates)
