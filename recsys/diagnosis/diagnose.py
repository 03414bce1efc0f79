"""The whole diagnosis: rows, estimators, batches, popularity, advice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.data import PreparedDataset
from recsys.diagnosis.advice import advise
from recsys.diagnosis.batch_errors import BatchError, full_gradient, measure_step
from recsys.diagnosis.batch_spread import BatchSpread
from recsys.diagnosis.estimator import Estimator
from recsys.diagnosis.kind import Kind, Material
from recsys.diagnosis.measurement import Measurement, summarize
from recsys.diagnosis.positives import ChosenPositives, choose_positives
from recsys.diagnosis.recommended import RecommendedPopularity, recommend_by_popularity
from recsys.diagnosis.registry import KINDS
from recsys.diagnosis.result import Diagnosis
from recsys.diagnosis.row_errors import RowErrors, measure_rows
from recsys.diagnosis.subject import Subject
from recsys.diagnosis.subjects import Towers, subject_of_positives, subjects_of_batches
from recsys.evaluation import Resampling, build_queries, embed_queries
from recsys.foundations import (
    Progress,
    check_choice,
    check_positive,
    make_generator,
    make_numpy_generator,
)


@dataclass(frozen=True, kw_only=True)
class DiagnosisPlan:
    """What is measured, and how closely.

    Attributes:
        estimators: Names of `KINDS`.
        sample_sizes: Candidates a row, as each estimator understands it.
        num_positives: Validation positives.
        num_draws: Draws of each estimator and size on them.
        batch_size: Rows of a training step.
        num_batches: Training batches, each with one draw of each estimator and size.
        ties: See `EventBatches`.
        target: Largest error of a step that the advice accepts.
        k: Length of the recommended lists.
        max_users: Most validation users who are given one.
        resampling: How intervals are made; its seed is that of all draws.
    """

    estimators: Sequence[str]
    sample_sizes: Sequence[int]
    num_positives: int
    num_draws: int
    batch_size: int
    num_batches: int
    ties: str
    target: float
    k: int
    max_users: int
    resampling: Resampling

    def __post_init__(self) -> None:
        """Check names and numbers."""
        for name in self.estimators:
            check_choice("estimators", name, KINDS)
        for size in self.sample_sizes:
            check_positive("sample_sizes", size)
        for name in ("num_positives", "num_draws", "batch_size", "num_batches", "target", "k"):
            check_positive(name, getattr(self, name))


@dataclass(frozen=True)
class _Case:
    """An estimator at one sample size."""

    name: str
    kind: Kind
    estimator: Estimator
    size: int
    num_draws: int
    is_step: bool


def diagnose(
    dataset: PreparedDataset,
    towers: Towers,
    material: Material,
    plan: DiagnosisPlan,
    about: Mapping[str, Any],
) -> Diagnosis:
    """Measure estimators of the softmax on a model's own scores.

    Args:
        dataset: The prepared data set.
        towers: The model.
        material: What estimators are built of.
        plan: What is measured.
        about: Plain values that go along into the file, such as which model it is.

    Raises:
        DataError: The validation part holds no positive with training events.
    """
    chosen = choose_positives(dataset, plan.num_positives, plan.resampling.seed)
    subject = subject_of_positives(dataset, towers, chosen)
    cases, skipped = _cases(plan, material)
    num_blocks = sum(1 for _ in subject.blocks())
    total = sum(case.num_draws * num_blocks + case.is_step * plan.num_batches for case in cases)
    with Progress("diagnosing", total, "draws") as progress:
        rows = [_measure_rows(case, subject, plan, progress) for case in cases]
        steps, spread = _measure_steps(cases, dataset, towers, plan, progress)
    measurements = _summaries(cases, rows, steps, plan)
    batch_size = min(plan.batch_size, len(dataset.train))
    return Diagnosis(
        about={**about, **_about(chosen, towers, plan, batch_size), "batch_spread": spread},
        level=plan.resampling.level,
        measurements=measurements,
        skipped=skipped,
        popularity=_popularity(dataset, towers, material, plan),
        advice=advise(measurements, target=plan.target, batch_size=batch_size),
    )


def _cases(plan: DiagnosisPlan, material: Material) -> tuple[list[_Case], dict[str, str]]:
    cases, skipped = [], {}
    for name in plan.estimators:
        kind = KINDS[name]
        estimator = kind.build(material)
        if isinstance(estimator, str):
            skipped[name] = estimator
            continue
        num_draws = plan.num_draws if kind.draws else 1
        cases += [
            _Case(name, kind, estimator, size, num_draws, kind.is_step(size, material))
            for size in kind.sizes(plan.sample_sizes, material)
        ]
    return cases, skipped


def _measure_rows(
    case: _Case, subject: Subject, plan: DiagnosisPlan, progress: Progress
) -> RowErrors:
    return measure_rows(
        case.estimator,
        subject,
        case.size,
        num_draws=case.num_draws,
        stream=(plan.resampling.seed, "diagnosis", "rows", case.name),
        advance=lambda done: progress.advance(done, case.name),
    )


def _measure_steps(
    cases: Sequence[_Case],
    dataset: PreparedDataset,
    towers: Towers,
    plan: DiagnosisPlan,
    progress: Progress,
) -> tuple[list[list[BatchError]], float | None]:
    """Take a step of every case on each batch in turn: what slows one down slows all down.

    Returns:
        The steps of each case, and the spread of the full softmax's gradient over the batches.
    """
    spread = BatchSpread()
    steps: list[list[BatchError]] = [[] for _ in cases]
    seed = plan.resampling.seed
    batches = subjects_of_batches(
        dataset,
        towers,
        ties=plan.ties,
        batch_size=plan.batch_size,
        num_batches=plan.num_batches,
        seed=seed,
    )
    for turn, batch in enumerate(batches):
        full = full_gradient(batch)
        spread.add(full.items)
        for case, taken in zip(cases, steps, strict=True):
            if case.is_step:
                generator = make_generator(seed, "diagnosis", "steps", case.name, case.size, turn)
                taken.append(measure_step(case.estimator, batch, case.size, full, generator))
                progress.advance(1, case.name)
    return steps, spread.relative()


def _summaries(
    cases: Sequence[_Case],
    rows: Sequence[RowErrors],
    steps: Sequence[Sequence[BatchError]],
    plan: DiagnosisPlan,
) -> tuple[Measurement, ...]:
    return tuple(
        summarize(
            case.name,
            case.size,
            of_rows,
            of_steps,
            plan.resampling,
            has_likelihood=case.kind.has_likelihood,
        )
        for case, of_rows, of_steps in zip(cases, rows, steps, strict=True)
    )


def _popularity(
    dataset: PreparedDataset, towers: Towers, material: Material, plan: DiagnosisPlan
) -> RecommendedPopularity:
    queries = build_queries(dataset, "validation")
    if len(queries) > plan.max_users:
        rng = make_numpy_generator(plan.resampling.seed, "diagnosis", "users")
        queries = queries.take(np.sort(rng.permutation(len(queries))[: plan.max_users]))
    return recommend_by_popularity(
        queries,
        towers.trained(embed_queries(towers.model, queries)),
        towers.trained(towers.item_vectors),
        material.counts,
        temperature=towers.temperature,
        k=plan.k,
        exclude_seen=dataset.exclude_seen,
    )


def _about(
    chosen: ChosenPositives, towers: Towers, plan: DiagnosisPlan, batch_size: int
) -> dict[str, Any]:
    return {
        "num_items": len(towers.item_vectors),
        "temperature": towers.temperature,
        "num_positives": len(chosen),
        "num_positives_wanted": plan.num_positives,
        "num_positives_available": chosen.num_available,
        "num_positives_without_training_events": chosen.num_unreachable,
        "positives_by_decile": [int(count) for count in chosen.per_decile()],
        "num_draws": plan.num_draws,
        "batch_size": batch_size,
        "num_batches": plan.num_batches,
        "target": plan.target,
        "seed": plan.resampling.seed,
    }
