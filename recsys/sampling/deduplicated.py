"""A fixed number of independent draws, of which repeats are dropped."""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import check_count
from recsys.sampling.catalogue_sum import sum_over_catalogue
from recsys.sampling.draw import DrawRequest, Sample
from recsys.sampling.inclusion import log_inclusion_probability
from recsys.sampling.proposal import Proposal
from recsys.sampling.unique_rows import unique_rows


class DeduplicatedSampler:
    """Draw T candidates shared by the batch and keep each of them once.

    The expected count is the inclusion probability ``1 - (1 - p)^T``, exactly. How many stay, S, is
    left to chance; its mean, the sum of the inclusion probabilities, is computed once in O(C), or,
    for a proposal that changes, at each draw over the different probabilities.

    Args:
        proposal: What is drawn from; updates and state are passed on to it.
        num_draws: T, at least 1.

    Raises:
        ArgumentError: `num_draws` is not a whole number from 1 on.
    """

    def __init__(self, proposal: Proposal, *, num_draws: int) -> None:
        check_count("num_draws", num_draws)
        self._proposal, self._num_draws = proposal, num_draws
        is_fixed = not proposal.state_dict()
        self._fixed_size = self._expected_size() if is_fixed else None

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:  # noqa: ARG002
        """Draw [S] different candidates, in the order of their rows."""
        size = self._expected_size() if self._fixed_size is None else self._fixed_size
        return Sample(
            rows=unique_rows(self._proposal.draw(self._num_draws, generator))[0],
            log_expected_count=self._log_expected_count,
            expected_size=size,
        )

    def _log_expected_count(self, rows: Tensor) -> Tensor:
        return self._log_inclusion(self._proposal.log_probability(rows))

    def _log_inclusion(self, log_probability: Tensor) -> Tensor:
        return log_inclusion_probability(log_probability, self._num_draws)

    def _expected_size(self) -> float:
        return sum_over_catalogue(self._proposal, lambda log_p: self._log_inclusion(log_p).exp())

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:  # noqa: ARG002
        """Let the proposal learn."""
        self._proposal.update(positive_rows)

    def state_dict(self) -> dict[str, Tensor]:
        """Give the proposal's state."""
        return self._proposal.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand the proposal its state."""
        self._proposal.load_state_dict(state)
