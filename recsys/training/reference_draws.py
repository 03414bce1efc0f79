"""References: draws from the model itself, with exact weights, by a Markov chain.

Dimensions: B rows in the batch, S draws, C candidates in the catalogue, E output width.
"""

import math

import torch
from torch import Tensor

from recsys.foundations import TrainingError, check_positive
from recsys.losses import exact_importance_weights, independent_chain
from recsys.models import TwoTower
from recsys.sampling import Proposal
from recsys.training.drawn_candidates import embed_rows
from recsys.training.objective import Catalogue
from recsys.training.reference_objective import Weighed


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
