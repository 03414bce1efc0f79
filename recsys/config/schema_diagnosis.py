"""Settings of the command `diagnose`: types and ranges."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, between, one_of, share
from recsys.config.schema_data import PATH
from recsys.config.schema_model import ModelConfig
from recsys.config.schema_stages import PrepareConfig
from recsys.config.schema_training import HistoryConfig, TrackingConfig
from recsys.diagnosis import KINDS
from recsys.foundations import ConfigError

_LEAST_POSITIVES = 256


@dataclass(kw_only=True)
class DiagnoseConfig(PrepareConfig):
    """Measure bias and noise of the estimators of the softmax on a model's own scores."""

    bundle: str | None = field(default=MISSING, metadata=PATH)
    model: ModelConfig = MISSING
    history: HistoryConfig = MISSING
    estimators: list[str] = MISSING
    sample_sizes: list[int] = MISSING
    num_positives: int = MISSING  # of the validation part, in equal shares of the deciles
    num_draws: int = MISSING  # of each estimator and size
    batch_size: int = MISSING
    num_batches: int = MISSING  # each with a draw of each estimator and size
    target: float = MISSING  # largest error of a step that the advice accepts
    unigram_share: float = MISSING  # of the bigram; above 0, at most 1
    ess_quantile: float = MISSING  # of the adaptive sample
    burn_in_share: float = MISSING  # of the Metropolis-Hastings chain
    max_exact_items: int = MISSING  # estimators that visit the whole catalogue end there
    k: int = MISSING  # of the recommended lists
    max_users: int = MISSING  # who are given one
    num_bootstrap: int = MISSING
    confidence: float = MISSING
    tracking: TrackingConfig = MISSING

    def __post_init__(self) -> None:
        """Check the choices and ranges."""
        super().__post_init__()
        _each_once("estimators", self.estimators)
        _each_once("sample_sizes", self.sample_sizes)
        for name in self.estimators:
            one_of("estimators", name, KINDS)
        for size in self.sample_sizes:
            at_least("sample_sizes", size, 1)
        at_least("num_positives", self.num_positives, _LEAST_POSITIVES)
        for key in ("num_draws", "batch_size"):
            at_least(key, getattr(self, key), 2)
        for key in ("num_batches", "max_exact_items", "k", "max_users", "num_bootstrap"):
            at_least(key, getattr(self, key), 1)
        above("target", self.target, 0)
        if not 0 < self.unigram_share <= 1:
            raise ConfigError(
                f"unigram_share must be above 0 and at most 1, got {self.unigram_share}."
            )
        share("ess_quantile", self.ess_quantile)
        share("burn_in_share", self.burn_in_share)
        between("confidence", self.confidence, 0, 1)


def _each_once(key: str, values: Sequence[object]) -> None:
    if not values:
        raise ConfigError(f"{key} must hold at least one value, got none.")
    if len(set(values)) < len(values):
        raise ConfigError(f"{key} must hold each value once, got {list(values)}.")
