"""Candidates that tend to follow each query's last item.

Dimensions: B queries in the batch, S sampled candidates a query.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_count
from recsys.sampling.bigram import BigramProposal
from recsys.sampling.draw import DrawRequest, Sample, check_no_state


class BigramSampler:
    """Draw S candidates for each query, with replacement, given the newest item of its history.

    The expected count is ``S * Q(candidate | last item)``, exactly; repeats stay.

    Args:
        proposal: What is drawn from.
        num_sampled: S, at least 1.

    Raises:
        ArgumentError: `num_sampled` is not a whole number from 1 on.
    """

    def __init__(self, proposal: BigramProposal, *, num_sampled: int) -> None:
        check_count("num_sampled", num_sampled)
        self._proposal, self._num_sampled = proposal, num_sampled

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Draw [B, S] candidates.

        Raises:
            ArgumentError: The request does not hold the last rows, or one is out of range.
        """
        last_rows = request.last_rows
        if last_rows is None:
            raise ArgumentError("`last_rows` must be given to a bigram sampler, got none.")

        def log_expected_count(rows: Tensor) -> Tensor:
            by_query = rows.expand(len(last_rows), rows.shape[-1])  # [B, K]
            return self._proposal.log_probability(last_rows, by_query) + math.log(self._num_sampled)

        return Sample(
            rows=self._proposal.draw(last_rows, self._num_sampled, generator),
            log_expected_count=log_expected_count,
            expected_size=self._num_sampled,
        )

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Do nothing: the pairs are counted beforehand."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
