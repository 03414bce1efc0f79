"""What the losses over a sample share: checked arguments, and the logits of both sides.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_integers, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.block_passes import Weigh
from recsys.losses.expected_gradients import expect_weights
from recsys.losses.log_partition import log_partition
from recsys.losses.placed_embeddings import PlacedEmbeddings
from recsys.losses.products import check_product_dtype
from recsys.losses.removal import Removal
from recsys.losses.removed_places import RemovedPlaces
from recsys.losses.softplus_sum import softplus, softplus_sum

# [S, D], shared by the queries; or [B, S, D]; or both: the first columns and the last ones, these
# as copies or by their places.
SampledEmbeddings = Tensor | tuple[Tensor, Tensor | PlacedEmbeddings]


@dataclass(frozen=True)
class SampleLogits:
    """The positives' logits, and sums over the sampled ones that are left.

    Attributes:
        positive_logits: [B] or [B, T], float32 or wider.
        positive_weights: As `positive_logits`; 0 is padding. None: all count alike.
        queries: [B, D], same dtype; divided by the temperature.
        shared: [S1, D], same dtype; the first S1 candidates, those of every query.
        own: [B, S2, D], same dtype, or their places; the last S2, each query's own. None: S2 is 0.
        offsets: [S] or [B, S], same dtype, added to the sampled logits. None: nothing is.
        removed: Which sampled candidates leave which query's row.
        loss_weights: [B], what the losses will be weighed by. None: all alike.
        product_dtype: What the factors of the matrix products are rounded to. None: nothing.
    """

    positive_logits: Tensor
    positive_weights: Tensor | None
    queries: Tensor
    shared: Tensor
    own: Tensor | PlacedEmbeddings | None
    offsets: Tensor | None
    removed: RemovedPlaces
    loss_weights: Tensor | None
    product_dtype: torch.dtype | None

    @property
    def num_sampled(self) -> int:
        """Give S."""
        own = self.own.places if isinstance(self.own, PlacedEmbeddings) else self.own
        return len(self.shared) + (0 if own is None else own.shape[1])

    def sampled_logits(self) -> Tensor:
        """Compute all sampled logits: [B, S], -inf for what leaves."""
        logits = self.queries @ self.shared.T
        if self.own is not None:
            if isinstance(self.own, Tensor):
                own_logits = torch.bmm(self.own, self.queries[:, :, None]).squeeze(2)
            else:
                own_logits = self.own.scores(self.queries)
            logits = torch.cat([logits, own_logits], dim=1) if len(self.shared) else own_logits
        if self.offsets is not None:
            logits = logits + self.offsets
        removed = self.removed.find()
        # -inf, not a large negative number: a hit must get a gradient of exactly zero.
        return logits if removed is None else logits.masked_fill(removed, float("-inf"))

    def log_sum(self, weigh: Weigh | None) -> Tensor:
        """Compute the log of the summed exp of the sampled logits: [B]; -inf where none is left.

        A shared sample is summed in blocks.

        Args:
            weigh: The gradient to expect.
        """
        if not self._goes_in_blocks():
            return core.log_sum(self.sampled_logits())
        return log_partition(
            self.queries,
            self.shared,
            self.offsets,
            self.removed,
            weigh=weigh,
            product_dtype=self.product_dtype,
        )

    def softplus_sum(self) -> Tensor:
        """Compute the sum of ``log(1 + exp(logit))`` over the sampled: [B]; 0 where none is left.

        A shared sample is summed in blocks.
        """
        if not self._goes_in_blocks():
            return softplus(self.sampled_logits()).sum(dim=1)
        return softplus_sum(
            self.queries,
            self.shared,
            self.offsets,
            self.removed,
            weigh=expect_weights(self.loss_weights),
            product_dtype=self.product_dtype,
        )

    def count_left(self) -> Tensor:
        """Count the sampled candidates that are left in each row: [B], int64."""
        return self.removed.count_left()

    def _goes_in_blocks(self) -> bool:
        """Tell whether every query has the same candidates with the same offsets."""
        return self.own is None and (self.offsets is None or self.offsets.dim() == 1)


def compute_sample_logits(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    positive_log_q: Tensor | None,
    sampled_log_q: Tensor | None,
    temperature: float | Tensor,
    positive_biases: Tensor | None,
    sampled_biases: Tensor | None,
    own_columns: Tensor | None,
    sampled_mask: Tensor | None,
    positive_weights: Tensor | None,
    remove_accidental_hits: bool,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> SampleLogits:
    """Check the arguments that every loss over a sample takes, and compute its logits.

    ``logit = (<query, candidate> + bias) / temperature - log_q``. The arguments are those of
    `sampled_softmax_loss`. To be called with autocast off.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D, or T is 0.
        ArgumentError: `temperature` is not above 0, an argument holds numbers of another kind, or
            an own column is none of the sample (which is looked at on the CPU only, since a GPU
            would have to be waited for); `product_dtype` cannot be had.
    """
    _check_queries_and_positives(query_embeddings, positive_embeddings)
    batch, width = query_embeddings.shape
    for name, given in (
        ("positive_rows", positive_rows),
        ("positive_log_q", positive_log_q),
        ("positive_biases", positive_biases),
        ("positive_weights", positive_weights),
    ):
        core.check_optional(name, given, *positive_embeddings.shape[:-1])
    check_shape("sampled_rows", sampled_rows, *([batch] if sampled_rows.dim() == 2 else []), None)
    shared, own = _split(sampled_embeddings, batch, width, sampled_rows)
    core.check_optional("sampled_log_q", sampled_log_q, *sampled_rows.shape)
    core.check_optional("sampled_biases", sampled_biases, *sampled_rows.shape)
    core.check_mask("sampled_mask", sampled_mask, batch, sampled_rows.shape[-1])
    core.check_optional("loss_weights", loss_weights, batch)
    core.check_vectors(
        query_embeddings,
        positive_embeddings=positive_embeddings,
        sampled_embeddings=shared,
        **({} if own is None else {"sampled_embeddings[1]": _vectors_of(own)}),
    )
    check_integers("positive_rows", positive_rows)
    check_integers("sampled_rows", sampled_rows)
    _check_own_columns(own_columns, batch, sampled_rows.shape[-1])
    queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
    positive_scores = core.score_positives(queries, positive_embeddings)  # as positive_rows
    hit_rows = core.drop_padding(positive_rows, positive_weights)
    removal = Removal(
        sampled_rows, hit_rows if remove_accidental_hits else None, own_columns, sampled_mask
    )
    check_product_dtype(product_dtype, queries, shared=own is None and sampled_rows.dim() == 1)
    return SampleLogits(
        core.add_offsets(positive_scores, positive_biases, positive_log_q, temperature),
        positive_weights,
        queries,
        core.widen(shared),
        core.widen(own) if isinstance(own, Tensor) else own and own.widened(),
        core.combine_offsets(sampled_biases, sampled_log_q, temperature, queries.dtype),
        RemovedPlaces(removal, batch, sampled_rows.shape[-1]),
        loss_weights,
        product_dtype,
    )


def _split(
    embeddings: SampledEmbeddings, batch: int, width: int, sampled_rows: Tensor
) -> tuple[Tensor, Tensor | PlacedEmbeddings | None]:
    """Give the shared and the own candidates' embeddings: [S1, D] and [B, S2, D], or None."""
    if isinstance(embeddings, Tensor):
        check_shape("sampled_embeddings", embeddings, *sampled_rows.shape, width)
        if embeddings.dim() == 2:
            return embeddings, None
        return embeddings.new_zeros(0, width), embeddings
    shared, own = embeddings
    check_shape("sampled_embeddings[0]", shared, None, width)
    num_own = sampled_rows.shape[-1] - len(shared)
    if isinstance(own, Tensor):
        check_shape("sampled_embeddings[1]", own, batch, num_own, width)
    else:
        own.check("sampled_embeddings[1]", batch, num_own, width)
    return shared, own if num_own else None


def _vectors_of(own: Tensor | PlacedEmbeddings) -> Tensor:
    return own if isinstance(own, Tensor) else own.vectors


def _check_own_columns(own_columns: Tensor | None, batch: int, num_sampled: int) -> None:
    if own_columns is None:
        return
    check_shape("own_columns", own_columns, batch)
    check_integers("own_columns", own_columns)
    if own_columns.device.type == "cpu" and num_sampled > 0:  # of no column, none stays
        outside = own_columns[(own_columns < 0) | (own_columns >= num_sampled)]
        if len(outside):
            raise ArgumentError(
                f"`own_columns` must be in [0, {num_sampled}), got {int(outside[0])}."
            )


def _check_queries_and_positives(query_embeddings: Tensor, positive_embeddings: Tensor) -> None:
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    several = [None] if positive_embeddings.dim() == 3 else []
    check_shape("positive_embeddings", positive_embeddings, batch, *several, width)
    if several:
        core.check_positives("positive_embeddings", positive_embeddings, axis=1)
