"""Whole trainings: examples a second, and the time to a peer's recall."""

import itertools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.benchmark.train_naive import NaiveTraining
from recsys.benchmark.train_peer import PeerIals
from recsys.benchmark.train_recall import RecallJudge
from recsys.benchmark.train_result import RecallPoint, TrainResult
from recsys.foundations import check_positive
from recsys.models import TwoTower

HISTORY, NAIVE = "history tower", "history tower, naive"
PROFILE = "profile tower, {:,} users a step"
TO_RECALL, PEER = "profile tower to the recall", "implicit's iALS"

log = logging.getLogger(__name__)


class Training(Protocol):
    """A model in training."""

    @property
    def num_examples(self) -> int:
        """Count the positives of an epoch."""
        ...

    @property
    def model(self) -> TwoTower:
        """Give the model."""
        ...

    def begin(self) -> None:
        """Begin anew: first values, batches, optimisers."""
        ...

    def run_epoch(self) -> None:
        """Train for an epoch."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrainPlan:
    """What is measured.

    Attributes:
        settings: Sizes, for the report.
        history: The pooled history tower over sampled candidates.
        profiles: Users of a step -> the profile tower over the whole catalogue, as large as
            `history`.
        climbing: The profile tower that is to reach the recall.
        naive: The model of `history` as it is written first.
        naive_steps: Steps of it a round.
        naive_batch_size: Examples of a step.
        epochs: Of `climbing`, at most.
        judge: Of the recall.
        peer: Whose recall is to be reached; None: none is.
        peaks: Name of a measurement -> gives the most memory of a process that does it, in bytes.
            That of `TO_RECALL` is told the epochs that it takes.
        rounds: All that is compared runs in turn, so many times.
    """

    settings: Mapping[str, object]
    history: Training
    profiles: Mapping[int, Training]
    climbing: Training
    naive: NaiveTraining
    naive_steps: int
    naive_batch_size: int
    epochs: int
    judge: RecallJudge
    peer: PeerIals | None
    peaks: Mapping[str, Callable[[int], int]]
    rounds: int


def measure_train(plan: TrainPlan) -> TrainResult:
    """Time epochs of both towers, and the profile tower's way to the peer's recall.

    The time to the recall is that of the first epochs, model and batches made among them, after
    which the recall is at least the peer's; it was judged in a training before. Both settings are
    given; neither data reading nor judging counts on either side.

    Args:
        plan: What is measured.
    """
    check_positive("naive_steps", plan.naive_steps)
    target, points = None, _follow(plan)
    if plan.peer is not None and plan.judge.num_users > 0:
        plan.peer.fit()
        target = plan.judge.of_lists(plan.peer.top(plan.judge.seen, plan.judge.k))
    reached = next((p.epoch for p in points if target is not None and p.recall >= target), None)
    jobs, units = _jobs(plan, reached)
    seconds = time_alternately("train", jobs, rounds=plan.rounds)
    measurements = {
        name: Measurement(taken, *units[name], peak_bytes=_peak(plan, name, reached))
        for name, taken in seconds.items()
    }
    pairs = ((HISTORY, NAIVE), (TO_RECALL, PEER))
    result = BenchmarkResult(
        "train",
        "whole epochs of training, and a training up to the recall of a peer",
        plan.settings,
        measurements,
        tuple(
            time_ratio(measurements, first, second)
            for first, second in pairs
            if first in measurements and second in measurements
        ),
    )
    return TrainResult(result, plan.judge.k, points, target, reached)


def _follow(plan: TrainPlan) -> tuple[RecallPoint, ...]:
    """Train the profile tower and judge it after each epoch."""
    if plan.judge.num_users == 0:
        return ()
    points, spent, started = [], 0.0, time.perf_counter()
    plan.climbing.begin()
    for epoch in range(1, plan.epochs + 1):
        plan.climbing.run_epoch()
        spent += time.perf_counter() - started
        points.append(RecallPoint(epoch, spent, plan.judge.of_model(plan.climbing.model)))
        log.info("profile tower, epoch %d: recall@%d %.4f", epoch, plan.judge.k, points[-1].recall)
        started = time.perf_counter()
    return tuple(points)


def _jobs(
    plan: TrainPlan, reached: int | None
) -> tuple[dict[str, Job], dict[str, tuple[int, str]]]:
    """Give what is timed, and how much of what it does."""

    def to_recall() -> None:
        plan.climbing.begin()
        for _ in itertools.repeat(None, reached or 0):
            plan.climbing.run_epoch()

    plan.history.begin()
    naive_examples = plan.naive_steps * plan.naive_batch_size
    jobs: dict[str, Job] = {
        HISTORY: plan.history.run_epoch,
        NAIVE: lambda: plan.naive(plan.naive_steps),
    }
    units = {
        HISTORY: (plan.history.num_examples, "examples"),
        NAIVE: (naive_examples, "examples"),
    }
    for size, profile in plan.profiles.items():
        profile.begin()
        jobs[PROFILE.format(size)] = profile.run_epoch
        units[PROFILE.format(size)] = (profile.num_examples, "examples")
    if reached is not None:
        jobs[TO_RECALL] = to_recall
        units[TO_RECALL] = (1, "trainings")
    if plan.peer is not None:
        jobs[PEER] = plan.peer.fit
        units[PEER] = (1, "fits")
    return jobs, units


def _peak(plan: TrainPlan, name: str, reached: int | None) -> int | None:
    measure = plan.peaks.get(name)
    return None if measure is None else measure(reached or 1)
