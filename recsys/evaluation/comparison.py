"""Several rankings of the catalogue for the same users: what each came to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recsys.evaluation.estimates import Estimate, intervals_of, values_of
from recsys.foundations import atomic_file, write_json

FORMAT = "recsys-comparison"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ComparedSystem:
    """What one system came to.

    Attributes:
        metrics: `recall_at_10` and so on.
        difference: System minus popularity, with paired intervals; empty for popularity itself.
        behind_model: Model minus system, likewise; empty without a model and for the model itself.
        num_filled_users: Users whose list went on with popular items, for want of others.
        details: Plain values that go along, such as the settings that were chosen.
    """

    metrics: dict[str, Estimate]
    difference: dict[str, Estimate]
    behind_model: dict[str, Estimate]
    num_filled_users: int
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        plain = {
            **_plain(self.metrics),
            "difference_to_popularity": _plain(self.difference),
            "num_filled_users": self.num_filled_users,
            **self.details,
        }
        if self.behind_model:
            plain["difference_of_model"] = _plain(self.behind_model)
        return plain


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result; nothing in it is NaN, what is undefined is left out.

    Attributes:
        about: What was evaluated, as in a report.
        ks: Lengths of the list that was judged, rising.
        level: Share of resampled means inside an interval.
        counts: Users, items, relevant items, and what was left out.
        systems: By name; the model first where there is one, then popularity.
        chance: `recall_at_10` and so on of a list drawn at random; where only some candidates are
            ranked.
        skipped: Name -> why it was left out.
        per_user: One row a user: user_id, counts, and `<system>_<metric>`.
    """

    about: dict[str, Any]
    ks: tuple[int, ...]
    level: float
    counts: dict[str, int]
    systems: dict[str, ComparedSystem]
    chance: dict[str, float]
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
            "chance": self.chance,
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


def _plain(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {"metrics": values_of(estimates), "intervals": intervals_of(estimates)}
