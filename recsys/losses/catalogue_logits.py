"""What the losses over the whole catalogue share: checked arguments, and the positives' logits.

Dimensions: B queries, T positives a query, C candidates in the catalogue, D embedding width; P rows
of losses: B of them, or one for each positive of any query.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_integers, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.paired_scores import paired_scores


@dataclass(frozen=True)
class CatalogueLogits:
    """The positives' logits, and what a blocked sum over the catalogue needs.

    Attributes:
        positive_logits: [P, T], float32 or wider.
        positive_rows: [P, T], int64.
        positive_weights: [P, T]; 0 is padding. None: all count alike.
        queries: [B, D], same dtype; divided by the temperature.
        catalogue: [C, D], same dtype.
        offsets: [C], same dtype, added to the logits. None: nothing is.
        query_rows: [P], int64, the query of each row; None: P = B, and row b is of query b.
    """

    positive_logits: Tensor
    positive_rows: Tensor
    positive_weights: Tensor | None
    queries: Tensor
    catalogue: Tensor
    offsets: Tensor | None
    query_rows: Tensor | None

    def by_row(self, values: Tensor) -> Tensor:
        """Give what was computed once a query, [B], for each row of losses: [P]."""
        return values if self.query_rows is None else values.index_select(0, self.query_rows)

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
    query_rows: Tensor | None,
) -> CatalogueLogits:
    """Check the arguments that every loss over the catalogue takes, and compute its logits.

    ``logit = (<query, candidate> + bias) / temperature``. The arguments are those of
    `full_softmax_loss`. To be called with autocast off.

    Raises:
        ShapeError: Two arguments disagree in B, P, T, C or D, or T is 0.
        ArgumentError: `temperature` is not above 0, a positive is not in the catalogue, a query row
            is no query, or an argument holds numbers of another kind.
    """
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("catalogue_embeddings", catalogue_embeddings, None, width)
    several = [None] if positive_rows.dim() == 2 and query_rows is None else []
    num_rows = batch if query_rows is None else None
    check_shape("positive_rows", positive_rows, num_rows, *several)
    core.check_optional("positive_weights", positive_weights, *positive_rows.shape)
    core.check_optional("catalogue_biases", catalogue_biases, len(catalogue_embeddings))
    core.check_mask("catalogue_mask", catalogue_mask, batch, len(catalogue_embeddings))
    _check_query_rows(query_rows, len(positive_rows), batch, catalogue_mask)
    core.check_vectors(query_embeddings, catalogue_embeddings=catalogue_embeddings)
    weights = None if positive_weights is None else core.by_column(positive_weights)
    rows = _check_positives(core.by_column(positive_rows), weights, len(catalogue_embeddings))
    queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
    catalogue = core.widen(catalogue_embeddings)
    offsets = core.combine_offsets(catalogue_biases, None, temperature, queries.dtype)  # [C]
    positive_logits = _score_positives(queries, catalogue, rows, query_rows)  # [P, T]
    if offsets is not None:
        positive_logits = positive_logits + offsets[rows]
    return CatalogueLogits(positive_logits, rows, weights, queries, catalogue, offsets, query_rows)


def _score_positives(
    queries: Tensor, catalogue: Tensor, rows: Tensor, query_rows: Tensor | None
) -> Tensor:
    if query_rows is None:
        return core.score_positives(queries, catalogue[rows])
    return paired_scores(queries, catalogue, query_rows, rows.squeeze(1))[:, None]


def _check_query_rows(
    query_rows: Tensor | None, num_positives: int, batch: int, catalogue_mask: Tensor | None
) -> None:
    if query_rows is None:
        return
    check_shape("query_rows", query_rows, num_positives)
    check_integers("query_rows", query_rows)
    outside = query_rows[(query_rows < 0) | (query_rows >= batch)]
    if len(outside):
        raise ArgumentError(f"`query_rows` must be in [0, {batch}), got {int(outside[0])}.")
    if catalogue_mask is not None:
        raise ArgumentError("`catalogue_mask` must be None with `query_rows`, got a mask.")


def _check_positives(rows: Tensor, weights: Tensor | None, num_candidates: int) -> Tensor:
    """Check the positives' rows; give them with row 0 for padding: [B, T].

    A row below 0 would silently count from the end.
    """
    core.check_positives("positive_rows", rows, axis=1)
    check_integers("positive_rows", rows)
    if weights is not None:
        rows = rows.masked_fill(weights == 0, 0)
    outside = rows[(rows < 0) | (rows >= num_candidates)]
    if len(outside):
        raise ArgumentError(
            f"`positive_rows` must be in [0, {num_candidates}), got {int(outside[0])}."
        )
    return rows.long()
