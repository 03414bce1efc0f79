"""Every candidate enters the sample on its own coin, drawn without tossing one a candidate."""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import check_positive
from recsys.sampling.catalogue_sum import sum_over_catalogue
from recsys.sampling.draw import DrawRequest, Sample
from recsys.sampling.inclusion import log_poisson_inclusion_probability
from recsys.sampling.proposal import Proposal
from recsys.sampling.unique_rows import unique_rows


class IndependentSampler:
    """Draw Poisson(S) candidates shared by the batch and keep each of them once.

    A Poisson number of independent draws yields every candidate a Poisson(S p) number of times,
    independently of all others; so inclusions are independent, each with the expected count
    ``1 - exp(-S p)``, exactly. This is the setting of the classic derivation of the correction, in
    O(S) instead of a coin for each of C candidates. A sample can be empty, with chance exp(-S).

    How many stay is left to chance; the mean, the sum of the inclusion probabilities, is computed
    once in O(C), or, for a proposal that changes, at each draw over the different probabilities.

    Args:
        proposal: What is drawn from; updates and state are passed on to it.
        num_sampled: S, the mean number of draws, repeats included; at least 1.

    Raises:
        ArgumentError: `num_sampled` is below 1.
    """

    def __init__(self, proposal: Proposal, *, num_sampled: int) -> None:
        check_positive("num_sampled", num_sampled)
        self._proposal, self._num_sampled = proposal, num_sampled
        is_fixed = not proposal.state_dict()
        self._fixed_size = self._expected_size() if is_fixed else None

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:  # noqa: ARG002
        """Draw different candidates, in the order of their rows: about S less repeats."""
        size = self._expected_size() if self._fixed_size is None else self._fixed_size
        mean = torch.tensor(self._num_sampled, dtype=torch.float64)
        num_draws = int(torch.poisson(mean, generator=generator))
        return Sample(
            rows=unique_rows(self._proposal.draw(num_draws, generator))[0],
            log_expected_count=self._log_expected_count,
            expected_size=size,
        )

    def _log_expected_count(self, rows: Tensor) -> Tensor:
        return self._log_inclusion(self._proposal.log_probability(rows))

    def _log_inclusion(self, log_probability: Tensor) -> Tensor:
        return log_poisson_inclusion_probability(log_probability, self._num_sampled)

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
