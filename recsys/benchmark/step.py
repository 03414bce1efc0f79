"""The whole training step, against the size of the catalogue."""

from collections.abc import Callable, Sequence

from recsys.benchmark.growth import growth_of
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.foundations import check_positive


def measure_step(
    make_step: Callable[[int], Job],
    *,
    catalogue_sizes: Sequence[int],
    batch_size: int,
    steps: int,
    rounds: int,
) -> BenchmarkResult:
    """Time training steps on catalogues of several sizes; the ratios are to the smallest.

    Args:
        make_step: Catalogue size -> a function that takes one step: batch, forward, backward,
            update.
        catalogue_sizes: At least one.
        batch_size: Rows of a step.
        steps: Steps a round.
        rounds: Rounds.

    Raises:
        ArgumentError: A number is below 1.
    """
    check_positive("steps", steps)
    sizes = sorted(set(catalogue_sizes))
    names = {size: f"{size:,} items" for size in sizes}
    jobs = {names[size]: _repeated(make_step(size), steps) for size in sizes}
    seconds = time_alternately("step", jobs, rounds=rounds)
    measurements = {
        name: Measurement(taken, steps * batch_size, "rows", calls=steps)
        for name, taken in seconds.items()
    }
    return BenchmarkResult(
        "step",
        "one training step with batch, forward, backward and update, by size of the catalogue",
        {"catalogue_sizes": sizes, "batch_size": batch_size, "steps": steps, "rounds": rounds},
        measurements,
        tuple(time_ratio(measurements, names[size], names[sizes[0]]) for size in sizes[:0:-1]),
        (growth_of("step", "catalogue size", {n: measurements[names[n]] for n in sizes}),),
    )


def _repeated(step: Job, times: int) -> Job:
    def run() -> None:
        for _ in range(times):
            step()

    return run
