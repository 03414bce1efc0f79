"""What is minimised: the protocol, and the losses over the whole catalogue.

Dimensions: Q queries in the batch, P positives, C candidates in the catalogue, E output width of
the towers.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.foundations import ArgumentError
from recsys.models import TwoTower
from recsys.sampling import check_no_state


class Objective(Protocol):
    """Compute the loss of each positive of a batch."""

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,
    ) -> Tensor:
        """Give [P], in nats, from queries [Q, E]. What learns from a step learns here."""
        ...

    def start_epoch(self) -> None:
        """Begin the epoch's statistics anew."""
        ...

    def statistics(self) -> dict[str, float]:
        """Give what the epoch's draws were like so far, by name; empty if there are none."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_dict` gave."""
        ...


class CatalogueLoss(Protocol):
    """A loss over the whole catalogue: `full_softmax_loss`, `full_logistic_loss`."""

    def __call__(
        self,
        query_embeddings: Tensor,
        catalogue_embeddings: Tensor,
        *,
        positive_rows: Tensor,
        temperature: float | Tensor,
        query_rows: Tensor | None,
        loss_weights: Tensor | None,
    ) -> Tensor:
        """Give [P] from [Q, E] queries, [C, E] candidates, [P] positives and their [P] queries.

        The losses will be weighed by the weights [P].
        """
        ...


class CatalogueObjective:
    """A loss over the whole catalogue; the item tower runs for all of it at every step.

    Args:
        loss: Of each positive; it is given each query once, however many positives that has.
        item_features: [C] rows.
        considered: Rows of the candidates that the loss knows, rising; positives are among them.
            None: all.
    """

    def __init__(
        self,
        loss: CatalogueLoss,
        item_features: FeatureTable,
        considered: NDArray[np.int64] | None = None,
    ) -> None:
        self._loss, self._catalogue = loss, Catalogue(item_features, considered)

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,  # noqa: ARG002
    ) -> Tensor:
        """Embed the catalogue and compute the exact loss of each positive."""
        device, queries, weights = query_embeddings.device, batch.query_rows, batch.weights
        return self._loss(
            query_embeddings,
            self._catalogue.embed(model),
            positive_rows=self._catalogue.places(torch.from_numpy(batch.positives)).to(device),
            temperature=model.temperature(),
            query_rows=None if queries is None else torch.from_numpy(queries).to(device),
            loss_weights=None if weights is None else torch.from_numpy(weights).to(device),
        )

    def start_epoch(self) -> None:
        """Do nothing: nothing is drawn."""

    def statistics(self) -> dict[str, float]:
        """Give nothing: nothing is drawn."""
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: there is no sampler."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)


class Catalogue:
    """Candidates with their features, to be embedded at once.

    Args:
        item_features: [C] rows.
        considered: [n], rows of them, rising; None: all.
    """

    def __init__(
        self, item_features: FeatureTable, considered: NDArray[np.int64] | None = None
    ) -> None:
        self.features = item_features if considered is None else item_features.take(considered)
        self._all = considered is None
        rows = np.arange(len(item_features)) if considered is None else considered
        self._rows = torch.from_numpy(rows)

    def embed(self, model: TwoTower) -> Tensor:
        """Embed every candidate that is considered: [n, E], with the gradient."""
        return model.embed_candidates(self._rows, self.features)

    def places(self, rows: Tensor) -> Tensor:
        """Give where among them rows of the catalogue stand: int64, the shape of `rows`.

        Raises:
            ArgumentError: One is not considered.
        """
        if self._all:
            return rows
        places = torch.searchsorted(self._rows, rows).clamp(max=len(self._rows) - 1)
        if not torch.equal(self._rows[places], rows):
            raise ArgumentError("Positives must be among the candidates that the loss considers.")
        return places
