"""What the losses over the whole catalogue share: checked arguments, and the positives' logits.

Dimensions: B queries, T positives a query, C candidates in the catalogue, D embedding width; P rows
of losses: B of them, or one for each positive of any query.
"""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_integers, check_positive, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.blocks import Blocks, choose_blocks
from recsys.losses.paired_scores import paired_scores
from recsys.losses.products import check_product_dtype
from recsys.losses.removal import Removal
from recsys.losses.removed_places import RemovedPlaces


@dataclass(frozen=True)
class CatalogueLogits:
    """The positives' logits, and what a blocked sum over the catalogue needs.

    Attributes:
        positive_rows: [P, T], int64.
        positive_weights: [P, T]; 0 is padding. None: all count alike.
        queries: [B, D], float32 or wider; divided by the temperature.
        catalogue: [C, D], same dtype.
        offsets: [C], same dtype, added to the logits. None: nothing is.
        query_rows: [P], int64, the query of each row; None: P = B, and row b is of query b.
        loss_weights: [P], what the losses will be weighed by. None: all alike.
    """

    positive_rows: Tensor
    positive_weights: Tensor | None
    queries: Tensor
    catalogue: Tensor
    offsets: Tensor | None
    query_rows: Tensor | None
    loss_weights: Tensor | None

    @functools.cached_property
    def positive_logits(self) -> Tensor:
        """Give the positives' logits: [P, T], of the dtype of the queries."""
        if self.query_rows is None:
            scores = core.score_positives(self.queries, self.catalogue[self.positive_rows])
        else:
            rows = self.positive_rows.squeeze(1)
            scores = paired_scores(self.queries, self.catalogue, self.query_rows, rows)[:, None]
        return scores if self.offsets is None else scores + self.offsets[self.positive_rows]

    def by_row(self, values: Tensor) -> Tensor:
        """Give what was computed once a query, [B], for each row of losses: [P]."""
        if self.query_rows is None:
            return values
        # The gradient of a query is a sum over its rows, which may be thousands: in float64 it is
        # what was expected, so that the sum over the catalogue need not be taken again.
        return values.double().index_select(0, self.query_rows).to(values.dtype)

    def remove(self, own_rows: Tensor | None, considered: Tensor | None) -> RemovedPlaces:
        """Remove candidates [B, T] from their queries' sums, and what a mask [B, C] excludes."""
        batch, num_candidates = len(self.queries), len(self.catalogue)
        rows = torch.arange(num_candidates, device=self.catalogue.device)
        return RemovedPlaces(Removal(rows, own_rows, None, considered), batch, num_candidates)

    def blocks(self, row_block_size: int | None, catalogue_block_size: int | None) -> Blocks | None:
        """Give blocks of these sizes; None: what is fast.

        Raises:
            ArgumentError: A size is not above 0.
        """
        if row_block_size is None and catalogue_block_size is None:
            return None
        chosen = choose_blocks(self.queries.device, len(self.catalogue))
        blocks = Blocks(
            chosen.num_rows if row_block_size is None else row_block_size,
            chosen.num_columns if catalogue_block_size is None else catalogue_block_size,
        )
        check_positive("row_block_size", blocks.num_rows)
        check_positive("catalogue_block_size", blocks.num_columns)
        return blocks

    def sum_by_query(self, values: Tensor | None) -> Tensor | None:
        """Sum values of rows [P], or 1 each, by query: [B]; None: they are all 1."""
        if self.query_rows is None:
            return values
        if values is None:
            values = self.queries.new_ones(len(self.query_rows))
        sums = values.new_zeros(len(self.queries), dtype=torch.float64)  # as the gradient is summed
        return sums.index_add(0, self.query_rows, values.double()).to(values.dtype)


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
    loss_weights: Tensor | None,
    product_dtype: torch.dtype | None,
) -> CatalogueLogits:
    """Check the arguments that every loss over the catalogue takes, and compute its logits.

    ``logit = (<query, candidate> + bias) / temperature``. The arguments are those of
    `full_softmax_loss`. To be called with autocast off.

    Raises:
        ShapeError: Two arguments disagree in B, P, T, C or D, or T is 0.
        ArgumentError: `temperature` is not above 0, a positive is not in the catalogue, a query row
            is no query, an argument holds numbers of another kind, or `product_dtype` cannot be
            had.
    """
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("catalogue_embeddings", catalogue_embeddings, None, width)
    several = [None] if positive_rows.dim() == 2 and query_rows is None else []
    num_rows = batch if query_rows is None else None
    check_shape("positive_rows", positive_rows, num_rows, *several)
    core.check_optional("positive_weights", positive_weights, *positive_rows.shape)
    core.check_optional("loss_weights", loss_weights, len(positive_rows))
    core.check_optional("catalogue_biases", catalogue_biases, len(catalogue_embeddings))
    core.check_mask("catalogue_mask", catalogue_mask, batch, len(catalogue_embeddings))
    _check_query_rows(query_rows, len(positive_rows), batch, catalogue_mask)
    core.check_vectors(query_embeddings, catalogue_embeddings=catalogue_embeddings)
    weights = None if positive_weights is None else core.by_column(positive_weights)
    rows = _check_positives(core.by_column(positive_rows), weights, len(catalogue_embeddings))
    queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
    catalogue = core.widen(catalogue_embeddings)
    offsets = core.combine_offsets(catalogue_biases, None, temperature, queries.dtype)  # [C]
    check_product_dtype(product_dtype, queries, shared=True)
    return CatalogueLogits(rows, weights, queries, catalogue, offsets, query_rows, loss_weights)


def _check_query_rows(
    query_rows: Tensor | None, num_positives: int, batch: int, catalogue_mask: Tensor | None
) -> None:
    if query_rows is None:
        return
    check_shape("query_rows", query_rows, num_positives)
    check_integers("query_rows", query_rows)
    _check_range("query_rows", query_rows, batch)
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
    _check_range("positive_rows", rows, num_candidates)
    return rows.long()


def _check_range(name: str, rows: Tensor, size: int) -> None:
    """Check rows on the CPU; a GPU would have to be waited for."""
    if rows.device.type != "cpu":
        return
    outside = rows[(rows < 0) | (rows >= size)]
    if len(outside):
        raise ArgumentError(f"`{name}` must be in [0, {size}), got {int(outside[0])}.")
