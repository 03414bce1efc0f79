"""Settings of the trainer, index, evaluation and tracking groups: types and ranges."""

from dataclasses import dataclass, field, fields
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import alpha, at_least, between, one_of, threads
from recsys.foundations import ConfigError
from recsys.index import IndexSettings, TuningTarget, check_scann


@dataclass(kw_only=True)
class HistoryConfig:
    """Which earlier events a training positive may see."""

    ties: str = MISSING

    def __post_init__(self) -> None:
        """Check the choices."""
        one_of("history.ties", self.ties, ("include", "exclude"))


@dataclass(kw_only=True)
class TrainerConfig:
    """The training loop."""

    epochs: int = MISSING
    examples: str = MISSING
    batch_size: int = MISSING  # events, windows of sequences, or users of profiles
    user_weighting: float = MISSING  # an event weighs n ** -this, n the number of its user's events
    drop_last: bool = MISSING  # leave out an epoch's last, smaller batch
    shuffle_rows: int = MISSING  # the most events, windows or users that are shuffled at a time
    prefetch: int | None = MISSING  # batches made ahead by a thread; null: 1 with two threads
    operator_threads: int | None = MISSING  # of each operator of a step; null: by the widest layer
    device: str = MISSING
    precision: str = MISSING
    validate_at: int = MISSING  # k of the validation recall that picks the best epoch
    validation_users: int | None = MISSING  # at most so many, drawn by seed; null: all
    patience: int = MISSING  # epochs without a better recall before stopping; 0: never stop early
    checkpoint_steps: int = MISSING  # steps between checkpoints within an epoch; 0: only at its end
    refit: bool = MISSING  # train again on validation too, with what was chosen, for test

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("trainer.epochs", self.epochs, 1)
        one_of("trainer.examples", self.examples, ("events", "sequences", "profiles"))
        at_least("trainer.batch_size", self.batch_size, 1)
        if not 0 <= self.user_weighting <= 1:
            raise ConfigError(
                f"trainer.user_weighting must be from 0 to 1, got {self.user_weighting}."
            )
        at_least("trainer.shuffle_rows", self.shuffle_rows, 1)
        if self.prefetch is not None:
            at_least("trainer.prefetch", self.prefetch, 0)
        threads("trainer.operator_threads", self.operator_threads)
        one_of("trainer.device", self.device, ("auto", "cpu", "cuda", "mps"))
        one_of("trainer.precision", self.precision, ("float32", "bfloat16", "tf32"))
        at_least("trainer.validate_at", self.validate_at, 1)
        at_least("trainer.patience", self.patience, 0)
        at_least("trainer.checkpoint_steps", self.checkpoint_steps, 0)
        if self.validation_users is not None:
            at_least("trainer.validation_users", self.validation_users, 1)


@dataclass(kw_only=True)
class IndexConfig:
    """Settings of recsys.index.IndexSettings, which checks their ranges."""

    kind: str = MISSING
    m: int = MISSING
    ef_construction: int = MISSING
    ef_search: int = MISSING
    num_lists: int | None = MISSING
    num_probes: int | None = MISSING
    num_codes: int | None = MISSING
    code_bits: int = MISSING
    overfetch: int = MISSING
    factory: str = MISSING
    reproducible: bool = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.kind == "auto" and not isinstance(self, AutoIndexConfig):
            raise ConfigError("index.kind=auto needs the settings of its own choice: index=auto.")
        IndexSettings(**{one.name: getattr(self, one.name) for one in fields(IndexSettings)})
        if self.kind == "scann":
            check_scann()  # before any data is read


@dataclass(kw_only=True)
class AutoIndexConfig(IndexConfig):
    """Settings of recsys.index.TuningTarget too, which checks their ranges."""

    target_recall: float = MISSING
    target_k: int = MISSING
    memory_gb: float | None = MISSING
    queries_at_once: int = MISSING
    exact_below: int = MISSING
    num_queries: int = MISSING
    build_minutes: float = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        TuningTarget(**{one.name: getattr(self, one.name) for one in fields(TuningTarget)})


@dataclass(kw_only=True)
class EvaluationConfig:
    """What the report holds."""

    part: str = MISSING
    k: list[int] = MISSING
    candidates: str = MISSING  # what is ranked, at validation too; cold: those that training lacks
    num_bootstrap: int = MISSING
    confidence: float = MISSING
    popularity_alphas: list[float] = MISSING  # of the popularity dial, beside 0; []: none

    def __post_init__(self) -> None:
        """Check the ranges."""
        one_of("evaluation.part", self.part, ("validation", "test"))
        check_ks("evaluation.k", self.k)
        one_of("evaluation.candidates", self.candidates, ("all", "cold"))
        at_least("evaluation.num_bootstrap", self.num_bootstrap, 1)
        between("evaluation.confidence", self.confidence, 0, 1)
        for value in self.popularity_alphas:
            alpha("evaluation.popularity_alphas", value)


def check_ks(key: str, value: Any) -> None:
    """Check a list of list lengths."""
    if not value or any(k < 1 for k in value):
        raise ConfigError(f"{key} must hold numbers of at least 1, got {value}.")


@dataclass(kw_only=True)
class TrackingConfig:
    """What every tracking choice has."""


@dataclass(kw_only=True)
class NoTrackingConfig(TrackingConfig):
    """No store."""


@dataclass(kw_only=True)
class MlflowConfig(TrackingConfig):
    """MLflow: a SQLite file where the user stands, or a server."""

    uri: str = field(default=MISSING, metadata={"path": True})  # sqlite:///FILE: as a path
    experiment: str = MISSING
    run_name: str | None = MISSING  # null: the name of the run's folder
    on_error: str = MISSING
    artifact_root: str | None = field(default=MISSING, metadata={"path": True})
    log_bundle: bool = MISSING

    def __post_init__(self) -> None:
        """Check the choices."""
        one_of("tracking.on_error", self.on_error, ("fail", "warn"))
        for key in ("uri", "experiment"):
            if not getattr(self, key):
                raise ConfigError(f"tracking.{key} must not be empty.")
