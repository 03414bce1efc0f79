"""What an evaluation found, as one value: numbers, intervals, slices, warnings."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from recsys.evaluation.dial_judge import DialPoint
from recsys.evaluation.estimates import Estimate, intervals_of, values_of
from recsys.evaluation.slices import Slice
from recsys.evaluation.warm_start_report import WarmStartReport
from recsys.foundations import DataError, atomic_file, write_json

FORMAT = "recsys-report"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of an evaluation; nothing in it is NaN, what is undefined is left out.

    Attributes:
        about: What was evaluated: part, split, what was known of a user, what was left out.
        ks: Lengths of the list that was judged, rising.
        slice_k: The k of the slices.
        level: Share of resampled means inside an interval.
        counts: Users, items, relevant items, and what was left out.
        metrics: `recall_at_10` and so on; the exact ranking, or the list that was given.
        through_index: Likewise through the approximate index, and `index_recall_at_10`.
        popularity: Likewise for the popularity baseline.
        likelihood: `log_likelihood` (nats, mean over events) and `perplexity` of what was chosen,
            by the model's softmax over the whole catalogue.
        difference: Exact ranking minus popularity, with paired intervals.
        chance: `recall_at_10` and so on of a list drawn at random; where only some candidates are
            ranked.
        ties: `tied_at_10` (users with a tie across the cut), `pessimistic_recall_at_10`.
        slices: Kind of slice -> slices.
        popularity_dial: What settings of the dial come to, by rising alpha; one of them is 0.
        warnings: Sentences.
        per_user: One row a user: user_id, counts, metrics.
        warm_start: What the model went on from, and what that was worth; None: from nothing.
    """

    about: dict[str, Any]
    ks: tuple[int, ...]
    slice_k: int
    level: float
    counts: dict[str, int]
    metrics: dict[str, Estimate]
    per_user: pa.Table
    through_index: dict[str, Estimate] = field(default_factory=dict)
    popularity: dict[str, Estimate] = field(default_factory=dict)
    likelihood: dict[str, Estimate] = field(default_factory=dict)
    difference: dict[str, Estimate] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)
    ties: dict[str, float] = field(default_factory=dict)
    slices: dict[str, list[Slice]] = field(default_factory=dict)
    popularity_dial: list[DialPoint] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    warm_start: WarmStartReport | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the content of report.json; values per user are not part of it."""
        more = {} if self.warm_start is None else {"warm_start": self.warm_start.to_json()}
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "about": self.about,
            "k": list(self.ks),
            "interval_level": self.level,
            "counts": self.counts,
            "metrics": values_of(self.metrics),
            "intervals": intervals_of(self.metrics),
            "through_index": {
                "metrics": values_of(self.through_index),
                "intervals": intervals_of(self.through_index),
            },
            "popularity": {
                "metrics": values_of(self.popularity),
                "intervals": intervals_of(self.popularity),
            },
            "difference_to_popularity": {
                "metrics": values_of(self.difference),
                "intervals": intervals_of(self.difference),
            },
            "likelihood": {
                "metrics": values_of(self.likelihood),
                "intervals": intervals_of(self.likelihood),
            },
            "chance": self.chance,
            "ties": self.ties,
            "slices": {
                name: [one.to_json(self.slice_k) for one in some]
                for name, some in self.slices.items()
            },
            "popularity_dial": [point.to_json() for point in self.popularity_dial],
            "warnings": list(self.warnings),
            **more,
        }

    def flat_metrics(self) -> dict[str, float]:
        """Give the values under names of letters, digits and underscores, as trackers take them.

        `recall_at_10` and so on, `index_recall_at_10`, `through_index_recall_at_10`,
        `popularity_recall_at_10`, `log_likelihood`, `perplexity`, `tied_at_10`, and the counts,
        such as `num_users`.
        """
        flat = values_of(self.metrics)
        for name, value in values_of(self.through_index).items():
            flat[name if name.startswith("index_") else f"through_index_{name}"] = value
        flat |= {f"popularity_{name}": value for name, value in values_of(self.popularity).items()}
        flat |= values_of(self.likelihood) | self.ties
        return flat | {name: float(value) for name, value in self.counts.items()}

    def write(self, path: Path) -> None:
        """Write report.json, or wherever `path` leads, atomically."""
        write_json(path, self.to_json())

    def write_per_user(self, path: Path) -> None:
        """Write the values per user, atomically, as Parquet or CSV by the suffix.

        Raises:
            DataError: The suffix is neither .parquet nor .csv.
        """
        writers = {".parquet": pq.write_table, ".csv": csv.write_csv}
        if path.suffix not in writers:
            raise DataError(f"{path} must end in .parquet or .csv.")
        with atomic_file(path) as temporary:
            writers[path.suffix](self.per_user, temporary)
