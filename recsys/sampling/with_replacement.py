"""A fixed number of independent draws; repeats stay."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import check_count
from recsys.sampling.draw import DrawRequest, Sample
from recsys.sampling.proposal import Proposal


class WithReplacementSampler:
    """Draw S candidates shared by the batch, with replacement.

    The expected count is ``S * p``, exactly; repeats stay as separate terms.

    Args:
        proposal: What is drawn from; updates and state are passed on to it.
        num_sampled: S, at least 1.

    Raises:
        ArgumentError: `num_sampled` is not a whole number from 1 on.
    """

    def __init__(self, proposal: Proposal, *, num_sampled: int) -> None:
        check_count("num_sampled", num_sampled)
        self._proposal, self._num_sampled = proposal, num_sampled

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:  # noqa: ARG002
        """Draw [S] candidates."""
        return Sample(
            rows=self._proposal.draw(self._num_sampled, generator),
            log_expected_count=self._log_expected_count,
            expected_size=self._num_sampled,
        )

    def _log_expected_count(self, rows: Tensor) -> Tensor:
        return self._proposal.log_probability(rows) + math.log(self._num_sampled)

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:  # noqa: ARG002
        """Let the proposal learn."""
        self._proposal.update(positive_rows)

    def state_dict(self) -> dict[str, Tensor]:
        """Give the proposal's state."""
        return self._proposal.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand the proposal its state."""
        self._proposal.load_state_dict(state)
