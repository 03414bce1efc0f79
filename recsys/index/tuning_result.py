"""What the tuning of an index found: a row an index that was tried, and which one was taken."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recsys.foundations import ConfigError
from recsys.index.settings import IndexSettings


@dataclass(frozen=True, kw_only=True)
class TuningTarget:
    """What a tuned index must do.

    Attributes:
        target_recall: The least mean index recall; above 0, at most 1.
        target_k: Of the lists over which it is taken.
        memory_gb: Most memory of the index and the item vectors together; None: any.
        queries_at_once: Queries that a search brings while speed is measured.
        exact_below: Candidates below which exact search is taken unmeasured.
        num_queries: Most queries it is measured on; half of them choose, half verify.
        build_minutes: Graphs that would take longer to build, by what a part takes, are not tried.
        latency_ms: Most milliseconds that a search of `queries_at_once` queries may take, in the
            median; the index with the most recall within it is taken, and `target_recall` holds
            only where there is none. None: the fastest that finds `target_recall`.
        search_threads: Of the searches that are timed.
    """

    target_recall: float
    target_k: int
    memory_gb: float | None
    queries_at_once: int
    exact_below: int
    num_queries: int
    build_minutes: float
    latency_ms: float | None = None
    search_threads: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.target_recall <= 1:
            raise ConfigError(
                f"index.target_recall must be above 0 and at most 1, got {self.target_recall}."
            )
        if self.memory_gb is not None and not self.memory_gb > 0:
            raise ConfigError(f"index.memory_gb must be above 0, got {self.memory_gb}.")
        for name in ("build_minutes", "latency_ms"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"index.{name} must be above 0, got {value}.")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ConfigError(
                    f"index.{name} must be at least {least}, got {getattr(self, name)}."
                )


_LEAST = {
    "target_k": 1,
    "queries_at_once": 1,
    "exact_below": 0,
    "num_queries": 20,
    "search_threads": 1,
}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One index.

    Attributes:
        kind: As in the settings.
        factory: FAISS's words for it; empty where it was not built.
        dial: The settings that were searched for, with their values.
        outcome: chosen, slower, below the target, or not tried; under `latency_ms` also finds
            less, and too slow.
        reason: Why it was not tried; else empty.
        recall: Mean index recall over the verifying queries; None where it was not measured.
        recall_low: Lower end of its 95 % bootstrap interval.
        recall_high: Upper end.
        queries_per_second: Of `search_threads` threads, the median; None where it was not timed.
        block_ms: Milliseconds of a search of `queries_at_once` queries, the median.
        speedup: Times exact search, the median of rounds in turn.
        index_bytes: Of FAISS's index beside the item vectors, an estimate.
        build_seconds: With the threads that are set; centroids are found once and counted once.
    """

    kind: str
    outcome: str
    factory: str = ""
    dial: Mapping[str, int]
    reason: str = ""
    recall: float | None = None
    recall_low: float | None = None
    recall_high: float | None = None
    queries_per_second: float | None = None
    block_ms: float | None = None
    speedup: float | None = None
    index_bytes: int | None = None
    build_seconds: float | None = None

    @property
    def name(self) -> str:
        """Name the index and its dial, such as `IVF1264,Flat num_probes=8`."""
        dial = [f"{name}={value}" for name, value in self.dial.items()]
        return " ".join([self.factory or self.kind, *dial])


@dataclass(frozen=True)
class Tuning:
    """What was found.

    Attributes:
        target: What was asked for.
        trials: In the order they were tried, exact search first; empty where nothing was measured.
        settings: Of the index that was taken.
        about: In a sentence, what was taken and why.
        num_queries: How many verified; 0 where nothing was measured.
    """

    target: TuningTarget
    trials: Sequence[Trial]
    settings: IndexSettings
    about: str
    num_queries: int

    @property
    def chosen(self) -> Trial | None:
        """Give the trial that was taken; None where nothing was measured."""
        return next((trial for trial in self.trials if trial.outcome == "chosen"), None)

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "target": asdict(self.target),
            "about": self.about,
            "num_queries": self.num_queries,
            "settings": self.settings.to_json(),
            "trials": [asdict(trial) for trial in self.trials],
        }
