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
from recsys.foundations import TrainingError, check_positive
from recsys.losses import exact_importance_weights, independent_chain, monte_carlo_loss
from recsys.models import TwoTower
from recsys.sampling import Proposal
from recsys.training.drawn_candidates import embed_rows
from recsys.training.epoch_means import EpochMeans
from recsys.training.objective import Catalogue
from recsys.training.state_parts import join_parts, split_parts


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
        weighed = self._weigh(
            model, query_embeddings, torch.from_numpy(batch.positives), self._catalogue, generator
        )
        self._means.add(**weighed.statistics)
        return monte_carlo_loss(
            query_embeddings,
            weighed.positive_embeddings,
            weighed.sampled_embeddings,
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
        return join_parts(statistics=self._means.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the statistics.

        Raises:
            FormatError: It is of another loss.
        """
        [statistics] = split_parts(state, "statistics")
        self._means.load_state_dict(statistics)


@dataclass(frozen=True)
class Weighed:
    """Candidates shared by the batch, with a weight for each query.

    The weights are of the very vectors that are scored, also where dropout makes an item's vector
    another one each time.

    Attributes:
        positive_embeddings: [B, E].
        sampled_embeddings: [S, E].
        weights: [B, S], on the queries' device; without a gradient.
        statistics: What the draw was like.
    """

    positive_embeddings: Tensor
    sampled_embeddings: Tensor
    weights: Tensor
    statistics: Mapping[str, Tensor | float]


class Weigh(Protocol):
    """Draw candidates and weigh them, so that the weighted sum of scores has the gradient."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """Name what a draw's statistics hold."""
        ...

    def __call__(
        self,
        model: TwoTower,
        queries: Tensor,
        positive_rows: Tensor,
        catalogue: Catalogue,
        generator: torch.Generator,
    ) -> Weighed:
        """Weigh candidates for the queries [B, E] with the positives [B]."""
        ...


class MonteCarlo:
    """Draw each query's candidates from the model itself; costs what the full softmax costs.

    Args:
        num_sampled: Draws a query.
    """

    statistics: tuple[str, ...] = ("sample_size",)

    def __init__(self, *, num_sampled: int) -> None:
        self._num_sampled = num_sampled

    def __call__(
        self,
        model: TwoTower,
        queries: Tensor,
        positive_rows: Tensor,
        catalogue: Catalogue,
        generator: torch.Generator,
    ) -> Weighed:
        """Give every candidate the share of the query's draws that it has.

        Raises:
            TrainingError: The model's scores are not finite, so that nothing can be drawn.
        """
        embeddings = catalogue.embed(model)  # [C, E]
        scores = _scores(model, queries, embeddings).cpu().double()  # [B, C]
        if not torch.isfinite(scores).all():
            raise TrainingError(
                "the model's scores are not finite, so that nothing can be drawn from it. "
                "A lower optimizer.learning_rate or optimizer.gradient_clip=1 often helps."
            )
        chances, size = scores.softmax(dim=1), self._num_sampled
        drawn = torch.multinomial(chances, size, replacement=True, generator=generator)
        weights = torch.zeros_like(chances)
        weights.scatter_add_(1, drawn, torch.full_like(weights[:, :1], 1 / size).expand_as(drawn))
        rows = weights.any(dim=0).nonzero().squeeze(1)  # [S], drawn for any query
        return Weighed(
            embeddings[positive_rows.to(embeddings.device)],
            embeddings[rows.to(embeddings.device)],
            weights[:, rows].to(queries),
            {"sample_size": float(size)},
        )


class ExactImportance:
    """Draw from a proposal and weigh by the exact P / Q, for which Z is summed in full.

    Args:
        proposal: Where candidates come from.
        num_sampled: S, draws shared by the batch.
    """

    statistics: tuple[str, ...] = ("sample_size",)

    def __init__(self, proposal: Proposal, *, num_sampled: int) -> None:
        self._proposal, self._num_sampled = proposal, num_sampled

    def __call__(
        self,
        model: TwoTower,
        queries: Tensor,
        positive_rows: Tensor,
        catalogue: Catalogue,
        generator: torch.Generator,
    ) -> Weighed:
        """Give each draw its exact weight."""
        embeddings = catalogue.embed(model)  # [C, E]
        scores = _scores(model, queries, embeddings)  # [B, C]
        rows = self._proposal.draw(self._num_sampled, generator)
        log_q = self._proposal.log_probability(rows) + math.log(self._num_sampled)
        columns = rows.to(scores.device)
        log_weights = scores[:, columns] - log_q.to(scores)
        return Weighed(
            embeddings[positive_rows.to(embeddings.device)],
            embeddings[columns],
            exact_importance_weights(log_weights, scores.logsumexp(dim=1)),
            {"sample_size": float(self._num_sampled)},
        )


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

    def __call__(
        self,
        model: TwoTower,
        queries: Tensor,
        positive_rows: Tensor,
        catalogue: Catalogue,
        generator: torch.Generator,
    ) -> Weighed:
        """Give each proposal the share of the counted states that it is."""
        steps = self._num_sampled
        rows = self._proposal.draw(steps + 1, generator)  # the first: the initial state
        positives, sampled = embed_rows(
            model, catalogue.features, torch.cat([positive_rows, rows])
        ).tensor_split([len(positive_rows)])
        scores = _scores(model, queries, sampled)
        log_weights = scores - self._proposal.log_probability(rows).to(scores)  # [B, 1 + L]
        uniforms = torch.rand(len(queries), steps, generator=generator)
        chain = independent_chain(log_weights, uniforms.to(scores))
        counted = chain.places[:, self._burn_in :]  # [B, L - burn_in]
        weights = torch.zeros_like(log_weights)
        weights.scatter_add_(1, counted, torch.ones_like(counted, dtype=weights.dtype))
        return Weighed(
            positives,
            sampled,
            weights / counted.shape[1],
            {"sample_size": float(steps), "acceptance_rate": chain.accepted.float()},
        )


@torch.no_grad()
def _scores(model: TwoTower, queries: Tensor, embeddings: Tensor) -> Tensor:
    """Compute scores over the temperature, float32 or wider: [B, K]."""
    scores: Tensor = queries @ embeddings.T / model.temperature()
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
