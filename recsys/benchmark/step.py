"""The whole training step against a floor program and a naive one, by its sizes.

Dimensions: N items, B positives of a step, D width of the vectors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from recsys.benchmark.growth import Growth, at_least_two, growth_of
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.memory import peak_bytes
from recsys.benchmark.result import BenchmarkResult, Ratio, time_ratio
from recsys.benchmark.step_floor import FloorStep
from recsys.benchmark.step_inputs import StepSize, draw_for, make_step_batches
from recsys.benchmark.step_naive import NaiveStep
from recsys.data import TrainingBatch
from recsys.foundations import check_positive

STEP, MERGED = "step", "step, repeats merged"
FLOOR, NAIVE = "floor program", "naive: all logits, dense Adam"
# Sizes and batches -> what takes one step, by name; STEP is among them.
StepMaker = Callable[[StepSize, list[TrainingBatch]], Mapping[str, Job]]
_Measured = dict[str, dict[int, Measurement]]


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """What is measured.

    Attributes:
        size: Sizes where nothing else is said; its items are those of the smallest catalogue.
        catalogue_sizes: N, at least one.
        naive_sizes: N at which the naive program is measured too; those of no catalogue are passed
            over.
        batch_sizes: B, on the smallest catalogue; fewer than two show no growth, and are passed
            over.
        dims: D, likewise.
        hidden: Width of both towers' hidden layer, for the programs that the step is compared with;
            None: the model is another one than theirs, and they are left out.
        history_length: Items of a user's history that the model reads.
        steps: Steps a round.
        rounds: Rounds.
        seed: Of events, draws and first values.
    """

    size: StepSize
    catalogue_sizes: Sequence[int]
    naive_sizes: Sequence[int]
    batch_sizes: Sequence[int]
    dims: Sequence[int]
    hidden: int | None
    history_length: int
    steps: int
    rounds: int
    seed: int


def measure_step(make_steps: StepMaker, plan: StepPlan) -> BenchmarkResult:
    """Time training steps: batch, draw, forward, backward, update.

    Everything of one axis runs in turn in one process. The floor of the toolkit's step is what the
    floor program takes; a batch and its users are the same for both, and so is how its candidates
    are drawn. Memory is the most that the tensors of one step hold beside the tables.

    Args:
        make_steps: Builds the toolkit's steps.
        plan: Sizes and rounds.

    Raises:
        ArgumentError: The number of steps is below 1.
    """
    check_positive("steps", plan.steps)
    base, catalogues = plan.size, sorted(set(plan.catalogue_sizes))
    by_items = {n: replace(base, num_items=n) for n in catalogues}
    by_batch = {b: replace(base, batch_size=b) for b in at_least_two(plan.batch_sizes)}
    by_dim = {d: replace(base, dim=d) for d in at_least_two(plan.dims)}
    of_items = _measure(make_steps, plan, "items", by_items, naive=plan.naive_sizes)
    growth = [
        *_growth("catalogue size", of_items),
        *_growth("batch size", _measure(make_steps, plan, "rows a step", by_batch)),
        *_growth("dimension", _measure(make_steps, plan, "dimensions", by_dim)),
    ]
    measurements = {
        _label(name, n): one for name, some in of_items.items() for n, one in some.items()
    }
    return BenchmarkResult(
        "step",
        "one training step, from the draw to the update; its floor: the bare tensor operations",
        _settings(plan, catalogues),
        measurements,
        tuple(_ratios(measurements, of_items, catalogues)),
        tuple(growth),
    )


def _settings(plan: StepPlan, catalogues: list[int]) -> dict[str, object]:
    return {
        "catalogue_sizes": catalogues,
        "num_users": plan.size.num_users,
        "batch_size": plan.size.batch_size,
        "num_sampled": plan.size.num_sampled,
        "dim": plan.size.dim,
        "hidden": plan.hidden,
        "steps": plan.steps,
        "rounds": plan.rounds,
    }


def _measure(
    make_steps: StepMaker,
    plan: StepPlan,
    unit: str,
    sizes: Mapping[int, StepSize],
    *,
    naive: Sequence[int] = (),
) -> _Measured:
    """Measure every job at each of the sizes of one axis: name -> size -> measurement."""
    if not sizes:
        return {}
    jobs = {
        (name, at): job
        for at, size in sizes.items()
        for name, job in _jobs(make_steps, plan, size, naive=at in naive).items()
    }
    labels = {
        f"{name}, {at:,} {unit}": _repeated(job, plan.steps) for (name, at), job in jobs.items()
    }
    seconds = time_alternately(f"step by {unit}", labels, rounds=plan.rounds)
    measured: _Measured = {}
    for ((name, at), job), taken in zip(jobs.items(), seconds.values(), strict=True):
        units = plan.steps * sizes[at].batch_size
        measured.setdefault(name, {})[at] = Measurement(
            taken, units, "rows", peak_bytes(job), calls=plan.steps
        )
    return _with_floors(measured)


def _jobs(make_steps: StepMaker, plan: StepPlan, size: StepSize, *, naive: bool) -> dict[str, Job]:
    batches = make_step_batches(size, history_length=plan.history_length, seed=plan.seed)
    jobs = dict(make_steps(size, batches))
    if plan.hidden is None:
        return jobs
    inputs = draw_for(batches, size, seed=plan.seed)
    jobs[FLOOR] = FloorStep(size, plan.hidden, inputs, seed=plan.seed)
    if naive:
        jobs[NAIVE] = NaiveStep(size, plan.hidden, inputs)
    return jobs


def _with_floors(measured: _Measured) -> _Measured:
    """Let what the floor program takes be the floor of the toolkit's step."""
    floors = {at: one.seconds_a_call for at, one in measured.get(FLOOR, {}).items()}
    if not floors:
        return measured
    steps = {at: replace(one, floor_seconds=floors[at]) for at, one in measured[STEP].items()}
    return measured | {STEP: steps}


def _ratios(
    measurements: Mapping[str, Measurement], measured: _Measured, catalogues: Sequence[int]
) -> Iterable[Ratio]:
    """Compare each step with that on the smallest catalogue, the floor and the naive program."""
    smallest = catalogues[0]
    for name in (STEP, MERGED):
        for at in reversed([at for at in catalogues if at in measured.get(name, {})]):
            others = [(name, smallest)] if at != smallest else []
            others += [(other, at) for other in (FLOOR, NAIVE) if at in measured.get(other, {})]
            for other, of in others:
                yield time_ratio(measurements, _label(name, at), _label(other, of))


def _label(name: str, num_items: int) -> str:
    return f"{name}, {num_items:,} items"


def _growth(axis: str, measured: _Measured) -> list[Growth]:
    return [growth_of(name, axis, some) for name, some in measured.items() if some]


def _repeated(step: Job, times: int) -> Job:
    def run() -> None:
        for _ in range(times):
            step()

    return run
