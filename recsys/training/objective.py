"""What is minimised: a loss over the candidates that a sampler drew, or over the catalogue.

Dimensions: B rows in the batch, S sampled candidates, C candidates in the catalogue, E output
width of the towers.
"""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from recsys.data import FeatureTable
from recsys.losses import full_softmax_loss, sampled_softmax_loss
from recsys.models import TwoTower
from recsys.sampling import DrawRequest, Sampler, check_no_state, draw


class Objective(Protocol):
    """Compute the loss of each row of a batch."""

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        positive_rows: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Give [B], in nats; query_embeddings [B, E], positive_rows [B] int64 on the CPU."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_dict` gave."""
        ...


class SampledObjective:
    """Softmax over the positive and the candidates of a sampler, in-batch ones among them.

    The item tower runs once for each distinct item of the step.

    Args:
        sampler: Draws candidates and owns their log Q.
        item_features: [C] rows.
        corrected: Whether log Q is subtracted from the logits.
        mask_accidental_hits: Whether a sampled candidate that is the row's positive leaves its
            row. The own column of in-batch candidates always does.
    """

    def __init__(
        self,
        sampler: Sampler,
        item_features: FeatureTable,
        *,
        corrected: bool,
        mask_accidental_hits: bool,
    ) -> None:
        self._sampler, self._features = sampler, item_features
        self._corrected, self._mask = corrected, mask_accidental_hits

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        positive_rows: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Draw candidates, embed what is needed once, and compute the loss of each row."""
        drawn = draw(self._sampler, DrawRequest(positive_rows), generator)
        rows = torch.cat([positive_rows, drawn.rows.flatten()])
        unique, places = torch.unique(rows, return_inverse=True)
        embeddings = model.embed_candidates(unique, self._features.take(unique.numpy()))
        batch = len(positive_rows)
        device = query_embeddings.device
        return sampled_softmax_loss(
            query_embeddings,
            embeddings[places[:batch].to(device)],
            embeddings[places[batch:].to(device)].reshape(*drawn.rows.shape, -1),
            positive_rows=positive_rows.to(device),
            sampled_rows=drawn.rows.to(device),
            positive_log_q=drawn.positive_log_q.to(device) if self._corrected else None,
            sampled_log_q=drawn.log_q.to(device) if self._corrected else None,
            temperature=model.temperature(),
            remove_accidental_hits=self._mask,
            own_columns=None if drawn.own_columns is None else drawn.own_columns.to(device),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Give the sampler's state."""
        return self._sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand the sampler its state."""
        self._sampler.load_state_dict(state)


class FullSoftmaxObjective:
    """Softmax over the whole catalogue; the item tower runs for all of it at every step.

    Args:
        item_features: [C] rows.
    """

    def __init__(self, item_features: FeatureTable) -> None:
        self._features = item_features
        self._rows = torch.arange(len(item_features))

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        positive_rows: Tensor,
        generator: torch.Generator,  # noqa: ARG002
    ) -> Tensor:
        """Embed the catalogue and compute the exact loss of each row."""
        catalogue = model.embed_candidates(self._rows, self._features)
        return full_softmax_loss(
            query_embeddings,
            catalogue,
            positive_rows=positive_rows.to(query_embeddings.device),
            temperature=model.temperature(),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: there is no sampler."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
