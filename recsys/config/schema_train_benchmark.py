"""Settings of the benchmark `train`: types and ranges."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, share
from recsys.config.schema_data import PATH

_SIZES = (
    *("num_users", "num_items", "num_interactions", "embedding_dim", "batch_size", "num_sampled"),
    *("naive_steps", "profile_dim", "profile_batch_size", "profile_large_batch_size"),
    *("profile_epochs", "k", "peer_factors", "peer_iterations"),
)


@dataclass(kw_only=True)
class TrainBenchmarkConfig:
    """Whole trainings: the pooled history tower, the profile tower, and a peer."""

    interactions: str | None = field(default=MISSING, metadata=PATH)  # the log; null: made up
    num_users: int = MISSING  # of the made-up log, as the next two
    num_items: int = MISSING
    num_interactions: int = MISSING
    min_rating: float | None = MISSING  # of the profile tower's events, where a log is given
    embedding_dim: int = MISSING  # of both towers whose epochs are timed
    learning_rate: float = MISSING  # of the history tower, as the next two
    batch_size: int = MISSING
    num_sampled: int = MISSING  # shared by the batch
    naive_steps: int = MISSING  # a round
    profile_dim: int = MISSING  # of the profile tower on the way to the recall
    profile_large_batch_size: int = MISSING  # users; a second batch size whose epochs are timed
    profile_batch_size: int = MISSING  # users; of the profile tower, as the next five
    profile_epochs: int = MISSING  # at most, on the way to the peer's recall
    profile_learning_rate: float = MISSING
    profile_dropout: float = MISSING  # of the items of a profile
    profile_smoothing: float = MISSING  # of the targets
    profile_weight_decay: float = MISSING
    k: int = MISSING  # of the recall
    peer_factors: int = MISSING  # of implicit's iALS, as the next three
    peer_regularization: float = MISSING
    peer_alpha: float = MISSING
    peer_iterations: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in _SIZES:
            at_least(f"train.{name}", getattr(self, name), 1)
        rates = ("learning_rate", "profile_learning_rate", "peer_regularization", "peer_alpha")
        for name in rates:
            above(f"train.{name}", getattr(self, name), 0)
        at_least("train.profile_weight_decay", self.profile_weight_decay, 0)
        for name in ("profile_dropout", "profile_smoothing"):
            share(f"train.{name}", getattr(self, name))
