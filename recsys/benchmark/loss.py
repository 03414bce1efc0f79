"""The softmax over shared candidates, in blocks, against the ways that hold all logits.

Dimensions: B queries in the batch and as many candidates, D embedding width.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from recsys.benchmark.floor import measure_rates
from recsys.benchmark.fresh_process import run_in_fresh_process
from recsys.benchmark.growth import Growth, growth_of
from recsys.benchmark.loss_jobs import (
    BLOCKS,
    CHUNKS,
    IN_BATCH,
    PLAIN,
    ROUNDED,
    LossInputs,
    loss_jobs,
    make_inputs,
    other_ways,
    run_passes,
)
from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.resident_memory import resident_peak
from recsys.benchmark.result import BenchmarkResult, Ratio, memory_ratio, time_ratio

_KEPT = ", memory kept"  # of malloc that gives none back, so that no page is fresh
_FEW = 64  # queries of the pass that does not count
_PRODUCTS = 3  # logits, and the gradients of both sides


def measure_loss(
    *, sizes: Sequence[int], plain_sizes: Collection[int], dim: int, rounds: int, seed: int
) -> BenchmarkResult:
    """Time forward and backward passes, and take their peak memory.

    All times are of fresh processes with malloc as it comes; the blocks and the plain way once more
    with one that keeps its memory. The floor is three matrix products and one exp a logit. Peak
    memory is resident, beyond the inputs.

    Args:
        sizes: B, and as many candidates; at least one.
        plain_sizes: Those of the sizes at which all logits are held, in many copies: 12 bytes x B x
            B and more.
        dim: D.
        rounds: Rounds.
        seed: Of the made-up inputs.
    """
    by_size: dict[int, dict[str, Measurement]] = {}
    for size in sorted(set(sizes)):
        by_size[size] = _measure_size(size, dim, rounds, seed, plainly=size in plain_sizes)
    names = list(dict.fromkeys(name for measured in by_size.values() for name in measured))
    return BenchmarkResult(
        "loss",
        "loss over as many shared candidates as queries, forward and backward",
        {"sizes": list(by_size), "dim": dim, "rounds": rounds},
        {
            f"{name}, B = {size:,}": measurement
            for size, measured in by_size.items()
            for name, measurement in measured.items()
        },
        tuple(ratio for size, measured in by_size.items() for ratio in _compare(measured, size)),
        tuple(_growth(name, by_size) for name in names),
    )


def _measure_size(
    size: int, dim: int, rounds: int, seed: int, *, plainly: bool
) -> dict[str, Measurement]:
    names = (BLOCKS, ROUNDED, IN_BATCH, *other_ways(plainly=plainly))
    take = partial(_take_times, size, dim, rounds, seed)
    seconds = run_in_fresh_process(partial(take, names), keep_memory=False)
    if plainly:
        kept = run_in_fresh_process(partial(take, (BLOCKS, PLAIN)), keep_memory=True)
        seconds |= {name + _KEPT: taken for name, taken in kept.items()}
    measured = {}
    for name, taken in seconds.items():
        peak = None
        if not name.endswith(_KEPT):
            prepare = partial(_prepare, size, dim, seed, name)
            peak = resident_peak(partial(run_passes, name=name), prepare=prepare)
        floor = None if name == CHUNKS else _floor(size, dim, rounded=name == ROUNDED)
        measured[name] = Measurement(taken, size, "rows", peak, floor_seconds=floor)
    return measured


def _take_times(
    size: int, dim: int, rounds: int, seed: int, names: tuple[str, ...]
) -> dict[str, list[float]]:
    jobs = loss_jobs(make_inputs(size, dim, seed), names)
    return time_alternately(f"loss, B = {size:,}", jobs, rounds=rounds)


def _prepare(size: int, dim: int, seed: int, name: str) -> LossInputs:
    """Make the inputs, with the libraries loaded that the passes need."""
    run_passes(make_inputs(_FEW, dim, seed), name)
    return make_inputs(size, dim, seed)


def _floor(size: int, dim: int, *, rounded: bool) -> float:
    operations = _PRODUCTS * 2.0 * size * size * dim
    return measure_rates().floor_seconds(
        float32_operations=0 if rounded else operations,
        bfloat16_operations=operations if rounded else 0,
        exps=size * size,
    )


def _growth(name: str, by_size: Mapping[int, Mapping[str, Measurement]]) -> Growth:
    """Make a job's line, over the sizes that it was measured at; of the floors one is drawn."""
    points = {size: measured[name] for size, measured in by_size.items() if name in measured}
    if name not in (BLOCKS, BLOCKS + _KEPT):
        points = {size: replace(point, floor_seconds=None) for size, point in points.items()}
    group = "memory kept" if name.endswith(_KEPT) else ""
    return growth_of(name, "batch size", points, group=group)


def _compare(measured: Mapping[str, Measurement], size: int) -> list[Ratio]:
    """Set the blocks against the others of the same process, by time and by memory."""
    of_size = {f"{name}, B = {size:,}": one for name, one in measured.items()}
    pairs = [(BLOCKS, PLAIN), (BLOCKS, CHUNKS), (ROUNDED, BLOCKS), (IN_BATCH, PLAIN)]
    pairs += [(BLOCKS + _KEPT, PLAIN + _KEPT)]
    ratios = []
    for one, other in pairs:
        if one in measured and other in measured:
            first, second = f"{one}, B = {size:,}", f"{other}, B = {size:,}"
            ratios.append(time_ratio(of_size, first, second))
            if of_size[first].peak_bytes is not None:
                ratios.append(memory_ratio(of_size, first, second))
    return ratios
