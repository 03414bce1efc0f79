"""A surrogate whose gradient is that of candidates which were drawn and weighed.

Dimensions: B rows in the batch, S draws, E output width of the towers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.losses import monte_carlo_loss
from recsys.models import TwoTower
from recsys.training.epoch_means import EpochMeans
from recsys.training.expand_queries import expand_queries
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
        query_embeddings, batch = expand_queries(query_embeddings, batch)
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
