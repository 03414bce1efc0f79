"""Estimates to compare with: by draws from the model, by exact weights, by a Markov chain.

Dimensions: N rows, S draws of a row, C candidates in the catalogue.
"""

import math

import torch
from torch import Tensor

from recsys.diagnosis.candidates import Candidates, LossInputs
from recsys.diagnosis.row_losses import weighted
from recsys.diagnosis.subject import Subject
from recsys.losses import exact_importance_weights, independent_chain
from recsys.sampling import Proposal


class MonteCarlo:
    """Draw each row's candidates from its own softmax: unbiased, at the cost of the softmax."""

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Give every candidate that some row drew, with the share of each row's draws."""
        shares = torch.zeros(len(subject), subject.num_items)
        for rows in subject.blocks():
            chances = (subject.scores(rows) / subject.temperature).softmax(dim=1)  # [b, C]
            drawn = torch.multinomial(chances, size, replacement=True, generator=generator)
            shares[rows].scatter_add_(1, drawn, torch.full(drawn.shape, 1 / size))
        columns = shares.any(dim=0).nonzero().squeeze(1)  # [S], drawn for any row
        shares = shares[:, columns]
        facts = {"effective_sample_size": float(size)}
        return Candidates(rows=columns, num_draws=size, weights=shares, shares=shares, facts=facts)

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give a surrogate of each row whose gradient is the estimate."""
        return weighted(inputs, candidates)


class ExactImportance:
    """Weigh each draw by the exact P / Q: unbiased, and needs Z, a sum over the catalogue.

    Args:
        proposal: Where candidates come from.
    """

    def __init__(self, proposal: Proposal) -> None:
        self._proposal = proposal

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Draw candidates shared by the rows, and give each its weight."""
        rows = self._proposal.draw(size, generator)
        log_q = (self._proposal.log_probability(rows) + math.log(size)).float()
        logits = subject.scores_of(rows) / subject.temperature
        weights = exact_importance_weights(logits - log_q, subject.log_partition())
        return Candidates(rows=rows, num_draws=size, log_q=log_q, weights=weights)

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give a surrogate of each row whose gradient is the estimate."""
        return weighted(inputs, candidates)


class MetropolisHastings:
    """Run a chain a row over proposals that the rows share.

    Args:
        proposal: Where proposals come from.
        burn_in_share: Share of the steps, in [0, 1), whose states do not count.
    """

    def __init__(self, proposal: Proposal, *, burn_in_share: float) -> None:
        self._proposal, self._burn_in_share = proposal, burn_in_share

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Take `size` steps; give each proposal the share of the counted states that it is."""
        rows = self._proposal.draw(size + 1, generator)  # the first: the initial state
        logits = subject.scores_of(rows) / subject.temperature
        log_weights = logits - self._proposal.log_probability(rows).to(logits)  # [N, 1 + L]
        uniforms = torch.rand(len(subject), size, generator=generator)
        chain = independent_chain(log_weights, uniforms)
        counted = chain.places[:, int(self._burn_in_share * size) :]
        shares = torch.zeros_like(log_weights)
        shares.scatter_add_(1, counted, torch.full(counted.shape, 1 / counted.shape[1]))
        facts = {"acceptance_rate": float(chain.accepted.float().mean())}
        return Candidates(rows=rows, num_draws=size, weights=shares, shares=shares, facts=facts)

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give a surrogate of each row whose gradient is the estimate."""
        return weighted(inputs, candidates)
