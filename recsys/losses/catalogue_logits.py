"""What the losses over the whole catalogue share: checked arguments, and the positives' logits.

Dimensions: B queries, T positives a query, C candidates in the catalogue, D embedding width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import check_shape
from recsys.losses import softmax_core as core


@dataclass(frozen=True)
class CatalogueLogits:
    """The positives' logits, and what a blocked sum over the catalogue needs.

    Attributes:
        positive_logits: [B, T], float32 or wider.
        positive_rows: [B, T], int64.
        positive_weights: [B, T]; 0 is padding. None: all count alike.
        queries: [B, D], same dtype; divided by the temperature.
        catalogue: [C, D], same dtype.
        offsets: [C], same dtype, added to the logits. None: nothing is.
    """

    positive_logits: Tensor
    positive_rows: Tensor
    positive_weights: Tensor | None
    queries: Tensor
    catalogue: Tensor
    offsets: Tensor | None

    def all_rows(self) -> Tensor:
        """Give the rows of the catalogue: [C], int64."""
        return torch.arange(len(self.catalogue), device=self.catalogue.device)


def compute_catalogue_logits(
    query_embeddings: Tensor,
    catalogue_embeddings: Tensor,
    *,
    positive_rows: Tensor,
    temperature: float | Tensor,
    positive_weights: Tensor | None,
    catalogue_biases: Tensor | None,
    catalogue_mask: Tensor | None,
) -> CatalogueLogits:
    """Check the arguments that every loss over the catalogue takes, and compute its logits.

    ``logit = (<query, candidate> + bias) / temperature``. The arguments are those of
    `full_softmax_loss`. To be called with autocast off.

    Raises:
        ShapeError: Two arguments disagree in B, T, C or D.
        ArgumentError: `temperature` is not above 0.
    """
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("catalogue_embeddings", catalogue_embeddings, None, width)
    several = [None] if positive_rows.dim() == 2 else []
    check_shape("positive_rows", positive_rows, batch, *several)
    core.check_optional("positive_weights", positive_weights, *positive_rows.shape)
    core.check_optional("catalogue_biases", catalogue_biases, len(catalogue_embeddings))
    core.check_optional("catalogue_mask", catalogue_mask, batch, len(catalogue_embeddings))
    rows = positive_rows.reshape(batch, -1)  # [B, T]
    queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
    catalogue = core.widen(catalogue_embeddings)
    offsets = core.combine_offsets(catalogue_biases, None, temperature, queries.dtype)  # [C]
    positive_logits = core.score_positives(queries, catalogue[rows])  # [B, T]
    if offsets is not None:
        positive_logits = positive_logits + offsets[rows]
    weights = None if positive_weights is None else positive_weights.reshape(rows.shape)
    return CatalogueLogits(positive_logits, rows, weights, queries, catalogue, offsets)
