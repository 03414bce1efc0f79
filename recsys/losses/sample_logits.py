"""What the losses over a sample share: checked arguments, and the logits of both sides.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import check_shape
from recsys.losses import softmax_core as core
from recsys.losses.blocks import CACHED, count_left
from recsys.losses.log_partition import log_partition
from recsys.losses.removal import Removal
from recsys.losses.softplus_sum import softplus, softplus_sum


@dataclass(frozen=True)
class SampleLogits:
    """The positives' logits, and sums over the sampled ones that are left.

    Attributes:
        positive_logits: [B] or [B, T], float32 or wider.
        positive_weights: As `positive_logits`; 0 is padding. None: all count alike.
        queries: [B, D], same dtype; divided by the temperature.
        candidates: [S, D], shared by the queries, or [B, S, D], same dtype.
        offsets: [S] or [B, S], same dtype, added to the sampled logits. None: nothing is.
        removal: Which sampled candidates leave which query's row.
    """

    positive_logits: Tensor
    positive_weights: Tensor | None
    queries: Tensor
    candidates: Tensor
    offsets: Tensor | None
    removal: Removal

    def sampled_logits(self) -> Tensor:
        """Compute all sampled logits: [B, S], -inf for what leaves."""
        if self.candidates.dim() == 2:
            logits = self.queries @ self.candidates.T
        else:
            logits = torch.bmm(self.candidates, self.queries[:, :, None]).squeeze(2)
        if self.offsets is not None:
            logits = logits + self.offsets
        # -inf, not a large negative number: a hit must get a gradient of exactly zero.
        return logits.masked_fill(
            self.removal.find(slice(0, logits.shape[0]), slice(0, logits.shape[1])), float("-inf")
        )

    def log_sum(self) -> Tensor:
        """Compute the log of the summed exp of the sampled logits: [B]; -inf where none is left.

        A shared sample is summed in blocks.
        """
        if self.candidates.dim() == 2:
            return log_partition(
                self.queries, self.candidates, self.offsets, self.removal, blocks=CACHED
            )
        return core.log_sum(self.sampled_logits())

    def softplus_sum(self) -> Tensor:
        """Compute the sum of ``log(1 + exp(logit))`` over the sampled: [B]; 0 where none is left.

        A shared sample is summed in blocks.
        """
        if self.candidates.dim() == 2:
            return softplus_sum(
                self.queries, self.candidates, self.offsets, self.removal, blocks=CACHED
            )
        return softplus(self.sampled_logits()).sum(dim=1)

    def count_left(self) -> Tensor:
        """Count the sampled candidates that are left in each row: [B], int64."""
        return count_left(self.removal, len(self.queries), self.candidates.shape[-2], CACHED)


def compute_sample_logits(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: Tensor,
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
) -> SampleLogits:
    """Check the arguments that every loss over a sample takes, and compute its logits.

    ``logit = (<query, candidate> + bias) / temperature - log_q``. The arguments are those of
    `sampled_softmax_loss`. To be called with autocast off.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0.
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
    check_shape("sampled_embeddings", sampled_embeddings, *sampled_rows.shape, width)
    core.check_optional("sampled_log_q", sampled_log_q, *sampled_rows.shape)
    core.check_optional("sampled_biases", sampled_biases, *sampled_rows.shape)
    core.check_optional("own_columns", own_columns, batch)
    core.check_optional("sampled_mask", sampled_mask, batch, sampled_rows.shape[-1])
    queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
    positive_scores = core.score_positives(queries, positive_embeddings)  # as positive_rows
    hit_rows = core.drop_padding(positive_rows, positive_weights)
    return SampleLogits(
        core.add_offsets(positive_scores, positive_biases, positive_log_q, temperature),
        positive_weights,
        queries,
        core.widen(sampled_embeddings),
        core.combine_offsets(sampled_biases, sampled_log_q, temperature, queries.dtype),
        Removal(
            sampled_rows, hit_rows if remove_accidental_hits else None, own_columns, sampled_mask
        ),
    )


def _check_queries_and_positives(query_embeddings: Tensor, positive_embeddings: Tensor) -> None:
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    several = [None] if positive_embeddings.dim() == 3 else []
    check_shape("positive_embeddings", positive_embeddings, batch, *several, width)
