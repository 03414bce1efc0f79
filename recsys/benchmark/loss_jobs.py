"""The softmax over shared candidates, forward and backward, in the ways there are.

Dimensions: B queries in the batch and as many candidates, D embedding width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from recsys.benchmark.measure import Job
from recsys.foundations import make_generator
from recsys.losses import sampled_softmax_loss

BLOCKS = "float32 blocks"
ROUNDED = "bfloat16 blocks"
IN_BATCH = "float32 blocks, in-batch"
PLAIN = "plain torch, all logits"
CHUNKS = "torch's linear_cross_entropy"  # in chunks of the batch; knows no mask


@dataclass(frozen=True)
class LossInputs:
    """Made-up inputs; a sampled candidate is a positive of some row now and then."""

    queries: Tensor  # [B, D]
    positives: Tensor  # [B, D]
    sampled: Tensor  # [B, D]
    positive_rows: Tensor  # [B]
    sampled_rows: Tensor  # [B]
    positive_log_q: Tensor  # [B]
    sampled_log_q: Tensor  # [B]

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        """Give what gets a gradient."""
        return self.queries, self.positives, self.sampled


def make_inputs(size: int, dim: int, seed: int) -> LossInputs:
    """Make inputs of B = S = size."""
    generator = make_generator(seed, "benchmark", "loss")

    def embed() -> Tensor:
        values: Tensor = torch.randn(size, dim, generator=generator) / dim**0.25
        return values.requires_grad_()

    return LossInputs(
        queries=embed(),
        positives=embed(),
        sampled=embed(),
        positive_rows=torch.randint(4 * size, (size,), generator=generator),
        sampled_rows=torch.randint(4 * size, (size,), generator=generator),
        positive_log_q=-torch.rand(size, generator=generator),
        sampled_log_q=-torch.rand(size, generator=generator),
    )


def loss_jobs(inputs: LossInputs, names: tuple[str, ...]) -> dict[str, Job]:
    """Give jobs by their names: a forward and a backward pass of the mean loss."""
    return {name: partial(run_passes, inputs, name) for name in names}


def run_passes(inputs: LossInputs, name: str) -> None:
    """Compute the loss of a name and the gradients of its mean."""
    for leaf in inputs.leaves():
        leaf.grad = None
    torch.autograd.backward(_LOSSES[name](inputs).mean())


def other_ways(*, plainly: bool) -> tuple[str, ...]:
    """Name what the blocks are compared with.

    Args:
        plainly: Whether all logits at once are among them.
    """
    chunked = (CHUNKS,) if hasattr(functional, "linear_cross_entropy") else ()
    return (PLAIN, *chunked) if plainly else chunked


def _blocks(inputs: LossInputs, product_dtype: torch.dtype | None = None) -> Tensor:
    return sampled_softmax_loss(
        inputs.queries,
        inputs.positives,
        inputs.sampled,
        positive_rows=inputs.positive_rows,
        sampled_rows=inputs.sampled_rows,
        positive_log_q=inputs.positive_log_q,
        sampled_log_q=inputs.sampled_log_q,
        temperature=1.0,
        product_dtype=product_dtype,
    )


def _in_batch(inputs: LossInputs) -> Tensor:
    return sampled_softmax_loss(
        inputs.queries,
        inputs.positives,
        inputs.positives,
        positive_rows=inputs.positive_rows,
        sampled_rows=inputs.positive_rows,
        positive_log_q=inputs.positive_log_q,
        sampled_log_q=inputs.positive_log_q,
        temperature=1.0,
        own_columns=torch.arange(len(inputs.queries)),
    )


def _plain(inputs: LossInputs) -> Tensor:
    """Compute the same the plain way: [B, S] logits, a mask, one cross-entropy."""
    positive = (inputs.queries * inputs.positives).sum(dim=1) - inputs.positive_log_q  # [B]
    sampled = inputs.queries @ inputs.sampled.T - inputs.sampled_log_q  # [B, S]
    hits = inputs.positive_rows[:, None] == inputs.sampled_rows
    logits = torch.cat([positive[:, None], sampled.masked_fill(hits, float("-inf"))], dim=1)
    targets = torch.zeros(len(logits), dtype=torch.long)
    return functional.cross_entropy(logits, targets, reduction="none")


def _chunks(inputs: LossInputs) -> Tensor:
    """Let torch compute its nearest relative: candidate b is row b's positive, and none leaves."""
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=256)
    loss: Tensor = functional.linear_cross_entropy(
        inputs.queries,
        inputs.sampled,
        torch.arange(len(inputs.queries)),
        linear_bias=-inputs.sampled_log_q,
        options=options,
    )
    return loss


_LOSSES: dict[str, Callable[[LossInputs], Tensor]] = {
    BLOCKS: _blocks,
    ROUNDED: partial(_blocks, product_dtype=torch.bfloat16),
    IN_BATCH: _in_batch,
    PLAIN: _plain,
    CHUNKS: _chunks,
}
