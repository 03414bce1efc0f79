"""The sampled softmax against one that holds all logits.

Dimensions: B queries in the batch, S sampled candidates, D embedding width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.memory import peak_bytes
from recsys.benchmark.result import BenchmarkResult, Ratio, memory_ratio, time_ratio
from recsys.foundations import make_generator
from recsys.losses import sampled_softmax_loss


@dataclass(frozen=True)
class _Inputs:
    queries: Tensor  # [B, D]
    positives: Tensor  # [B, D]
    sampled: Tensor  # [S, D]
    positive_rows: Tensor  # [B]
    sampled_rows: Tensor  # [S]
    positive_log_q: Tensor  # [B]
    sampled_log_q: Tensor  # [S]

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.queries, self.positives, self.sampled


def measure_loss(
    *, batch_size: int, num_sampled: Sequence[int], dim: int, rounds: int, seed: int
) -> BenchmarkResult:
    """Time forward and backward passes of both forms, and take their peak memory.

    Args:
        batch_size: B.
        num_sampled: S, one comparison each.
        dim: D.
        rounds: Rounds.
        seed: Of the made-up inputs.
    """
    measurements: dict[str, Measurement] = {}
    ratios: list[Ratio] = []
    for size in num_sampled:
        inputs = _make_inputs(batch_size, size, dim, seed)
        blocked, dense = f"blocked, S={size:,}", f"dense [B, S], S={size:,}"
        jobs = {blocked: _passes(_blocked_loss, inputs), dense: _passes(_dense_loss, inputs)}
        for name, seconds in time_alternately("loss", jobs, rounds=rounds).items():
            peak = peak_bytes(jobs[name])
            measurements[name] = Measurement(seconds, batch_size, "rows", peak)
        ratios.append(time_ratio(measurements, blocked, dense))
        ratios.append(memory_ratio(measurements, blocked, dense))
    return BenchmarkResult(
        "loss",
        "forward and backward pass of the sampled softmax, in blocks and with all logits at once",
        {"batch_size": batch_size, "num_sampled": list(num_sampled), "dim": dim, "rounds": rounds},
        measurements,
        tuple(ratios),
    )


def _make_inputs(batch_size: int, num_sampled: int, dim: int, seed: int) -> _Inputs:
    generator = make_generator(seed, "benchmark", "loss")

    def embed(num: int) -> Tensor:
        values: Tensor = torch.randn(num, dim, generator=generator) / dim**0.5
        return values.requires_grad_()

    catalogue = 4 * num_sampled
    return _Inputs(
        queries=embed(batch_size),
        positives=embed(batch_size),
        sampled=embed(num_sampled),
        positive_rows=torch.randint(catalogue, (batch_size,), generator=generator),
        sampled_rows=torch.randint(catalogue, (num_sampled,), generator=generator),
        positive_log_q=-torch.rand(batch_size, generator=generator),
        sampled_log_q=-torch.rand(num_sampled, generator=generator),
    )


def _passes(loss: Callable[[_Inputs], Tensor], inputs: _Inputs) -> Job:
    def run() -> None:
        for leaf in inputs.leaves():
            leaf.grad = None
        torch.autograd.backward(loss(inputs).mean())

    return run


def _blocked_loss(inputs: _Inputs) -> Tensor:
    return sampled_softmax_loss(
        inputs.queries,
        inputs.positives,
        inputs.sampled,
        positive_rows=inputs.positive_rows,
        sampled_rows=inputs.sampled_rows,
        positive_log_q=inputs.positive_log_q,
        sampled_log_q=inputs.sampled_log_q,
        temperature=1.0,
    )


def _dense_loss(inputs: _Inputs) -> Tensor:
    """Compute the same the plain way: [B, S] logits, a mask, one cross-entropy."""
    positive = (inputs.queries * inputs.positives).sum(dim=1) - inputs.positive_log_q  # [B]
    sampled = inputs.queries @ inputs.sampled.T - inputs.sampled_log_q  # [B, S]
    hits = inputs.positive_rows[:, None] == inputs.sampled_rows
    logits = torch.cat([positive[:, None], sampled.masked_fill(hits, float("-inf"))], dim=1)
    targets = torch.zeros(len(logits), dtype=torch.long)
    return functional.cross_entropy(logits, targets, reduction="none")
