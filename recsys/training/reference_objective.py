"""References: estimates by draws from the model itself, by exact weights, by a Markov chain.

Dimensions: B rows in the batch, S draws, C candidates in the catalogue, E output width.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.foundations import check_positive
from recsys.losses import exact_importance_weights, independent_chain, monte_carlo_loss
from recsys.models import TwoTower
from recsys.sampling import Proposal
from recsys.training.drawn_candidates import embed_rows
from recsys.training.epoch_means import EpochMeans
from recsys.training.objective import Catalogue


class ReferenceObjective:
    """A surrogate whose gradient is an estimate of the softmax gradient.

    Its value has no meaning of its own: it is the weighted mean score of what was drawn, less the
    positive's.

    Args:
        weigh: Draws candidates and weighs them: `MonteCarlo`, `ExactImportance`,
            `MetropolisHastings`.
        item_features: [C] rows.
    """

    def __init__(self, weigh: "Weigh", item_features: FeatureTable) -> None:
        self._weigh, self._catalogue = weigh, Catalogue(item_features)
        self._means = EpochMeans(*weigh.statistics)

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,
    ) -> Tensor:
        """Compute the surrogate of each row: [B]."""
        candidates = self._catalogue
        weighed = self._weigh(model, query_embeddings.detach(), candidates, generator)
        self._means.add(**weighed.statistics)
        positive_rows = torch.from_numpy(batch.positives)
        rows = torch.cat([positive_rows, weighed.rows])
        positives, sampled = embed_rows(model, candidates.features, rows).tensor_split(
            [len(positive_rows)]
        )
        return monte_carlo_loss(
            query_embeddings,
            positives,
            sampled,
            sampled_weights=weighed.weights,
            temperature=model.temperature(),
        )

    def start_epoch(self) -> None:
        """Begin the epoch's statistics anew."""
        self._means.start_epoch()

    def statistics(self) -> dict[str, float]:
        """Give the epoch's means."""
        return self._means.means()

    def state_dict(self) -> dict[str, Tensor]:
        """Give the state of the statistics; the draws have none."""
        return self._means.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the statistics."""
        self._means.load_state_dict(state)


@dataclass(frozen=True)
class Weighed:
    """Candidates shared by the batch, with a weight for each query.

    Attributes:
        rows: [S], int64, on the CPU.
        weights: [B, S], on the queries' device; without a gradient.
        statistics: What the draw was like.
    """

    rows: Tensor
    weights: Tensor
    statistics: Mapping[str, Tensor | float]


class Weigh(Protocol):
    """Draw candidates and weigh them, so that the weighted sum of scores has the gradient."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """Name what a draw's statistics hold."""
        ...

    def __call__(
        self, model: TwoTower, queries: Tensor, catalogue: Catalogue, generator: torch.Generator
    ) -> Weighed:
        """Weigh candidates for the queries [B, E]."""
        ...


class MonteCarlo:
    """Draw each query's candidates from the model itself; costs what the full softmax costs.

    Args:
        num_sampled: Draws a query.
    """

    statistics: tuple[str, ...] = ("sample_size",)

    def __init__(self, *, num_sampled: int) -> None:
        self._num_sampled = num_sampled

    @torch.no_grad()
    def __call__(
        self, model: TwoTower, queries: Tensor, catalogue: Catalogue, generator: torch.Generator
    ) -> Weighed:
        """Give every candidate the share of the query's draws that it has."""
        logits = queries @ catalogue.embed(model).T / model.temperature()  # [B, C]
        chances = logits.float().softmax(dim=1).cpu()
        drawn = torch.multinomial(chances, self._num_sampled, replacement=True, generator=generator)
        weights = torch.zeros_like(chances)
        weights.scatter_add_(1, drawn, torch.full(drawn.shape, 1 / self._num_sampled))
        rows = weights.any(dim=0).nonzero().squeeze(1)  # [S], drawn for any query
        size = {"sample_size": float(self._num_sampled)}
        return Weighed(rows, weights[:, rows].to(queries.device), size)


class ExactImportance:
    """Draw from a proposal and weigh by the exact P / Q, for which Z is summed in full.

    Args:
        proposal: Where candidates come from.
        num_sampled: S, draws shared by the batch.
    """

    statistics: tuple[str, ...] = ("sample_size",)

    def __init__(self, proposal: Proposal, *, num_sampled: int) -> None:
        self._proposal, self._num_sampled = proposal, num_sampled

    @torch.no_grad()
    def __call__(
        self, model: TwoTower, queries: Tensor, catalogue: Catalogue, generator: torch.Generator
    ) -> Weighed:
        """Give each draw its exact weight."""
        logits = queries @ catalogue.embed(model).T / model.temperature()  # [B, C]
        rows = self._proposal.draw(self._num_sampled, generator)
        log_q = self._proposal.log_probability(rows) + math.log(self._num_sampled)
        drawn = logits[:, rows.to(logits.device)].float()
        weights = exact_importance_weights(drawn - log_q.to(drawn), logits.float().logsumexp(dim=1))
        return Weighed(rows, weights, {"sample_size": float(self._num_sampled)})


class MetropolisHastings:
    """Run one independence chain a query over proposals that the batch shares.

    Args:
        proposal: Where proposals come from.
        num_sampled: Steps of a chain, the first `burn_in` among them.
        burn_in: States that do not count.

    Raises:
        ArgumentError: No state would count.
    """

    statistics: tuple[str, ...] = ("sample_size", "acceptance_rate")

    def __init__(self, proposal: Proposal, *, num_sampled: int, burn_in: int) -> None:
        check_positive("num_sampled - burn_in", num_sampled - burn_in)
        self._proposal, self._num_sampled, self._burn_in = proposal, num_sampled, burn_in

    @torch.no_grad()
    def __call__(
        self, model: TwoTower, queries: Tensor, catalogue: Catalogue, generator: torch.Generator
    ) -> Weighed:
        """Give each proposal the share of the counted states that it is."""
        rows = self._proposal.draw(self._num_sampled + 1, generator)  # the first: the initial state
        embeddings = embed_rows(model, catalogue.features, rows)
        logits = (queries @ embeddings.T).float() / model.temperature()
        log_weights = logits - self._proposal.log_probability(rows).to(logits)  # [B, 1 + L]
        uniforms = torch.rand(len(queries), self._num_sampled, generator=generator)
        chain = independent_chain(log_weights, uniforms.to(logits.device))
        counted = chain.places[:, self._burn_in :]  # [B, L - burn_in]
        weights = torch.zeros_like(log_weights)
        weights.scatter_add_(1, counted, torch.full_like(counted, 1, dtype=weights.dtype))
        return Weighed(
            rows,
            weights / counted.shape[1],
            {"sample_size": float(self._num_sampled), "acceptance_rate": chain.accepted.float()},
        )
