"""Draws with replacement, each query its own.

Dimensions: B queries in the batch, S sampled candidates a query.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import check_count
from recsys.sampling.draw import DrawRequest, Sample
from recsys.sampling.proposal import Proposal


class PerQuerySampler:
    """Draw S candidates for each query; repeats stay as separate terms.

    The expected count in a query's sample is ``S * probability``, exactly. Queries do not share
    the noise of one draw, at the price of B S embeddings instead of S.

    Args:
        proposal: What is drawn from.
        num_sampled: S, at least 1.

    Raises:
        ArgumentError: `num_sampled` is not a whole number from 1 on.
    """

    def __init__(self, proposal: Proposal, *, num_sampled: int) -> None:
        check_count("num_sampled", num_sampled)
        self._proposal, self._num_sampled = proposal, num_sampled

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Draw [B, S] candidates."""
        batch, log_size = len(request.positive_rows), math.log(self._num_sampled)
        rows = self._proposal.draw(batch * self._num_sampled, generator)
        return Sample(
            rows=rows.reshape(batch, self._num_sampled),
            log_expected_count=lambda some: self._proposal.log_probability(some) + log_size,
            expected_size=self._num_sampled,
        )

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:  # noqa: ARG002
        """Let the proposal learn."""
        self._proposal.update(positive_rows)

    def state_dict(self) -> dict[str, Tensor]:
        """Give the proposal's state."""
        return self._proposal.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand the proposal its state."""
        self._proposal.load_state_dict(state)
