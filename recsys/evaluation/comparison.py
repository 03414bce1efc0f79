"""Several rankings of the catalogue for the same users, each against popularity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recsys.data import PreparedDataset
from recsys.evaluation.estimates import (
    Estimate,
    Resampling,
    intervals_of,
    plain_estimates,
    values_of,
)
from recsys.evaluation.measures import ListJudge, Values, check_ks
from recsys.evaluation.part_facts import count_part, describe_part
from recsys.evaluation.queries import EvaluationQueries, build_queries
from recsys.evaluation.rankers import FilledRanker, PopularityRanker, Ranker, rank_blocks
from recsys.foundations import DataError, atomic_file, write_json

POPULARITY = "popularity"
FORMAT = "recsys-comparison"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ComparedSystem:
    """What one system came to.

    Attributes:
        metrics: `recall_at_10` and so on.
        difference: System minus popularity, with paired intervals; empty for popularity itself.
        num_filled_users: Users whose list went on with popular items, for want of others.
        details: Plain values that go along, such as the settings that were chosen.
    """

    metrics: dict[str, Estimate]
    difference: dict[str, Estimate]
    num_filled_users: int
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "metrics": values_of(self.metrics),
            "intervals": intervals_of(self.metrics),
            "difference_to_popularity": {
                "metrics": values_of(self.difference),
                "intervals": intervals_of(self.difference),
            },
            "num_filled_users": self.num_filled_users,
            **self.details,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result; nothing in it is NaN, what is undefined is left out.

    Attributes:
        about: What was evaluated, as in a report.
        ks: Lengths of the list that was judged, rising.
        level: Share of resampled means inside an interval.
        counts: Users, items, relevant items, and what was left out.
        systems: By name, popularity first.
        skipped: Name -> why it was left out.
        per_user: One row a user: user_id, counts, and `<system>_<metric>`.
    """

    about: dict[str, Any]
    ks: tuple[int, ...]
    level: float
    counts: dict[str, int]
    systems: dict[str, ComparedSystem]
    skipped: dict[str, str]
    per_user: pa.Table

    def to_json(self) -> dict[str, Any]:
        """Give the content of the file; values per user are not part of it."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "about": self.about,
            "k": list(self.ks),
            "interval_level": self.level,
            "counts": self.counts,
            "systems": {name: system.to_json() for name, system in self.systems.items()},
            "skipped": self.skipped,
        }

    def flat_metrics(self) -> dict[str, float]:
        """Give `<system>_recall_at_10` and so on, as trackers take them."""
        return {
            f"{name}_{metric}": value
            for name, system in self.systems.items()
            for metric, value in values_of(system.metrics).items()
        }

    def write(self, path: Path) -> list[Path]:
        """Write the numbers, and beside them the values per user as Parquet; give both paths."""
        write_json(path, self.to_json())
        per_user = path.with_name(f"{path.stem}_per_user.parquet")
        with atomic_file(per_user) as temporary:
            pq.write_table(self.per_user, temporary)
        return [path, per_user]


def compare_rankers(
    dataset: PreparedDataset,
    part: str,
    rankers: Mapping[str, Ranker],
    *,
    ks: Sequence[int],
    resampling: Resampling,
    details: Mapping[str, Mapping[str, Any]],
    skipped: Mapping[str, str],
) -> Comparison:
    """Rank the whole catalogue by each system and by popularity, and judge all lists alike.

    Truth, exclusion, metrics and intervals are those of a model's report. A list that a ranker
    leaves short goes on with popular items.

    Args:
        dataset: The prepared data set.
        part: `validation` or `test`.
        rankers: Name -> system. Popularity by training events is always there beside them.
        ks: Lengths of the list that is judged.
        resampling: How intervals are made.
        details: Name -> plain values that go along into the file.
        skipped: Name -> why a system was left out.

    Raises:
        DataError: Nobody has events in the part.
        ArgumentError: `ks` is empty or holds a number below 1.
    """
    ks = check_ks(ks)
    queries = build_queries(dataset, part)
    if len(queries) == 0:
        raise DataError(f"The {part} part of {dataset.path} is empty: nothing to evaluate on.")
    counts = dataset.items.counts[: dataset.num_items]
    judged: dict[str, tuple[ListJudge, int]] = {}
    for name, ranker in {POPULARITY: PopularityRanker(counts), **rankers}.items():
        filled, judge = FilledRanker(ranker, counts), ListJudge(ks, counts)
        for block, lists in rank_blocks(
            queries, filled, ks[-1], exclude_seen=dataset.exclude_seen, what=f"ranking by {name}"
        ):
            judge.add(lists, block.truth)
        judged[name] = (judge, filled.num_filled)
    values = {name: judge.values() for name, (judge, _) in judged.items()}
    return Comparison(
        about=describe_part(dataset, part, dataset.exclude_seen),
        ks=ks,
        level=resampling.level,
        counts=count_part(dataset, queries, dataset.exclude_seen),
        systems={
            name: ComparedSystem(
                metrics=resampling.means(values[name]) | plain_estimates(judge.coverage()),
                difference={}
                if name == POPULARITY
                else resampling.means(_minus(values[name], values[POPULARITY])),
                num_filled_users=num_filled,
                details=details.get(name, {}),
            )
            for name, (judge, num_filled) in judged.items()
        },
        skipped=dict(skipped),
        per_user=_per_user(dataset, queries, values),
    )


def _minus(first: Values, second: Values) -> Values:
    return {name: values - second[name] for name, values in first.items()}


def _per_user(
    dataset: PreparedDataset, queries: EvaluationQueries, values: Mapping[str, Values]
) -> pa.Table:
    columns: dict[str, object] = {
        "user_id": dataset.users.vocabulary.ids_of(queries.user_rows),
        "num_relevant": queries.truth.lengths,
        "history_length": queries.histories.lengths,
    }
    for name, some in values.items():
        columns |= {f"{name}_{metric}": one for metric, one in some.items()}
    return pa.table(columns)
