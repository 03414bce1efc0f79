"""Where a model's first values come from: fresh ones, or what an older bundle has learnt."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recsys.bundle import Bundle
from recsys.data import FeatureSchema, PreparedDataset
from recsys.evaluation import (
    Report,
    Resampling,
    WarmStartReport,
    compare_before_after,
    mean_values,
)
from recsys.foundations import FormatError, atomic_folder, read_json, write_json
from recsys.models import RowMatch, TwoTower, carry_over, match_ids
from recsys.training.fit import TrainingRun

log = logging.getLogger(__name__)

# Values of each user by part, as `compare_before_after` takes them.
Measure = Callable[[TwoTower, PreparedDataset], Mapping[str, pa.Table]]


class Start(Protocol):
    """Where a run's model starts."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Give what the new bundle notes of it; known once the run has begun."""
        ...

    def begin(self, run: TrainingRun, dataset: PreparedDataset) -> None:
        """Give the run's model its first values, before the first step."""
        ...

    def compare(
        self, model: TwoTower, dataset: PreparedDataset, report: Report | None
    ) -> Report | None:
        """Add to the report of the trained model what there was before."""
        ...


class FreshStart:
    """The values that the model was built with."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Give nothing."""
        return {}

    def begin(self, run: TrainingRun, dataset: PreparedDataset) -> None:
        """Leave the model as it is."""

    def compare(
        self,
        model: TwoTower,  # noqa: ARG002
        dataset: PreparedDataset,  # noqa: ARG002
        report: Report | None,
    ) -> Report | None:
        """Give the report as it is."""
        return report


@dataclass(frozen=True)
class StartingPoint:
    """What is known of a warm start before the first step; kept in the run's folder.

    Attributes:
        bundle_id: As in `WarmStartReport`, like the two that follow.
        counts: By "users", "items" and "features".
        fresh_features: Why some started anew.
        before: What each user got, by part.
    """

    bundle_id: str
    counts: Mapping[str, Mapping[str, int]]
    fresh_features: Mapping[str, str]
    before: Mapping[str, pa.Table]

    def write(self, folder: Path) -> None:
        """Write it as a folder, which appears or replaces an old one in one step."""
        with atomic_folder(folder) as temporary:
            facts = {
                "bundle_id": self.bundle_id,
                "counts": {what: dict(some) for what, some in self.counts.items()},
                "fresh_features": dict(self.fresh_features),
                "parts": list(self.before),
            }
            write_json(temporary / "start.json", facts)
            for part, table in self.before.items():
                pq.write_table(table, temporary / f"{part}.parquet")

    @classmethod
    def read(cls, folder: Path) -> "StartingPoint":
        """Read what `write` wrote.

        Raises:
            MissingFileError: It is not there.
            FormatError: It is damaged.
        """
        facts = read_json(folder / "start.json")
        try:
            before = {p: pq.read_table(folder / f"{p}.parquet") for p in facts.pop("parts")}
            return cls(**facts, before=before)
        except (TypeError, KeyError, AttributeError, OSError, pa.ArrowException) as error:
            raise FormatError(f"{folder} is damaged: {error}.") from error


class WarmStart:
    """The values of an older bundle, and what they were worth on the new data.

    Args:
        find: Gives the starting point of a model, which it may change: `start_from_bundle`, or
            what a run that goes on from a checkpoint noted when it began.
        measure: Of the trained model.
        resampling: Of the intervals.
    """

    def __init__(
        self,
        find: Callable[[TwoTower, PreparedDataset], StartingPoint],
        measure: Measure,
        resampling: Resampling,
    ) -> None:
        self._find: Callable[[TwoTower, PreparedDataset], StartingPoint] | None = find
        self._measure, self._resampling = measure, resampling
        self._point: StartingPoint | None = None

    @property
    def provenance(self) -> dict[str, Any]:
        """Give the id of the older bundle."""
        return {"warm_started_from": self._known().bundle_id}

    def begin(self, run: TrainingRun, dataset: PreparedDataset) -> None:
        """Find the starting point; log and track what came along and what it is worth."""
        if self._find is not None:
            self._point, self._find = self._find(run.step.model, dataset), None  # frees the bundle
        point = self._known()
        means = mean_values(point.before)
        counts = {
            f"{what}_{name}": float(number)
            for what, some in point.counts.items()
            for name, number in some.items()
        }
        run.tracker.log_metrics({f"warm_start_{k}": v for k, v in (counts | means).items()}, step=0)
        log.info("warm start from the bundle %s; %s", point.bundle_id[:12], _words(point.counts))
        for name, why in point.fresh_features.items():
            log.info("the feature %s starts anew: %s", name, why)
        for part in point.before:
            prefix = f"before_{part}_recall_at_"
            recalls = [
                f"@{n.removeprefix(prefix)} {x:.4f}" for n, x in means.items() if prefix in n
            ]
            log.info("before training: %s recall %s", part, ", ".join(recalls))

    def compare(
        self, model: TwoTower, dataset: PreparedDataset, report: Report | None
    ) -> Report | None:
        """Measure the trained model as it was measured before, and add both to the report.

        A part that is empty now, as it went into training, is not compared.
        """
        point = self._known()
        if report is None:
            return None
        after = self._measure(model, dataset)
        before = {part: table for part, table in point.before.items() if part in after}
        found = compare_before_after(before, after, self._resampling)
        return replace(
            report,
            warm_start=WarmStartReport(
                bundle_id=point.bundle_id,
                counts=point.counts,
                fresh_features=point.fresh_features,
                before=found["before"],
                after=found["after"],
                difference=found["difference"],
            ),
        )

    def _known(self) -> StartingPoint:
        if self._point is None:
            raise RuntimeError("`begin` must come first.")
        return self._point


def start_from_bundle(
    bundle: Bundle, model: TwoTower, dataset: PreparedDataset, measure: Measure
) -> StartingPoint:
    """Give a model what a bundle has learnt, by the ids of users and items; and measure it.

    Users and items that the bundle lacks, or never met in training, start as `carry_over` says.

    Args:
        bundle: Of the same specification.
        model: Over the ids and features of `dataset`; is changed in place.
        dataset: The new data.
        measure: What the model is worth on it.
    """
    old = bundle.model
    users = match_ids(
        dataset.users.vocabulary,
        bundle.users.vocabulary,
        num_rows=dataset.num_users,
        learned=np.ones(bundle.num_users, np.bool_),
    )
    items = match_ids(
        dataset.items.vocabulary,
        bundle.items.vocabulary,
        num_rows=dataset.num_items,
        learned=old.item_tower.rows.trained.numpy(),
    )
    carried = carry_over(
        model,
        old,
        users=users,
        items=items,
        schemas=_schemas(dataset.users, dataset.items, dataset.context_schema),
        old_schemas=_schemas(bundle.users, bundle.items, bundle.context_schema),
        old_counts=bundle.item_counts[: bundle.num_model_items],
    )
    _log_untaught(old, users, items)
    for name in carried.fresh_layers:
        log.info("%s starts anew: the bundle has it in another shape, or not at all", name)
    return StartingPoint(
        bundle_id=bundle.bundle_id,
        counts={"users": users.counts(), "items": items.counts(), "features": carried.counts()},
        fresh_features=dict(carried.fresh_features),
        before=_before(model, old, dataset, measure),
    )


def _log_untaught(old: TwoTower, users: RowMatch, items: RowMatch) -> None:
    """Say where new ids start if the bundle learnt nothing of unknown ones."""
    for what, match, tower, where in (
        ("items", items, old.item_tower, "its rarest"),
        ("users", users, old.user_tower, "all its"),
    ):
        if match.num_new > 0 and tower.ids is not None and tower.rows.dropout == 0:
            log.info(
                "new %s start at the mean of %s %s, for the bundle was trained with "
                "model.%s_tower.id_dropout=0, which teaches nothing of unknown ones",
                what,
                where,
                what,
                what.removesuffix("s"),
            )


def _before(
    model: TwoTower, old: TwoTower, dataset: PreparedDataset, measure: Measure
) -> Mapping[str, pa.Table]:
    """Measure a model with the old one's bonus for repeats, which is no part of the weights."""
    if dataset.exclude_seen:
        return measure(model, dataset)
    own, its = model.spec, old.spec
    model.set_repeats(its.repeats_weight, its.repeats_decay)
    before = measure(model, dataset)
    model.set_repeats(own.repeats_weight, own.repeats_decay)
    return before


def _schemas(users: Any, items: Any, context: FeatureSchema) -> dict[str, FeatureSchema]:
    features = {"users": users.features.schema, "items": items.features.schema}
    return features | {"context": context}


def _words(counts: Mapping[str, Mapping[str, int]]) -> str:
    return "; ".join(
        f"{what} " + ", ".join(f"{number:,} {name}" for name, number in some.items())
        for what, some in counts.items()
    )
