"""Settings of the command `baselines`: types and ranges."""

from collections.abc import Sequence
from dataclasses import dataclass

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, one_of
from recsys.config.schema_stages import PrepareConfig
from recsys.config.schema_training import EvaluationConfig, TrackingConfig
from recsys.foundations import ConfigError

SYSTEMS = ("recent_popularity", "item_knn", "ease")


@dataclass(kw_only=True)
class RecentPopularityConfig:
    """Settings of recsys.baselines.recent_counts."""

    days: list[float] = MISSING  # windows before the latest event

    def __post_init__(self) -> None:
        """Check the ranges."""
        _filled("recent_popularity.days", self.days)
        for days in self.days:
            above("recent_popularity.days", days, 0)


@dataclass(kw_only=True)
class ItemKnnConfig:
    """Settings of recsys.baselines.ItemKnn."""

    num_neighbours: list[int] = MISSING  # similar items that are kept of each item
    shrinkage: list[float] = MISSING  # draws the similarity of rare items towards 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        _filled("item_knn.num_neighbours", self.num_neighbours)
        _filled("item_knn.shrinkage", self.shrinkage)
        for number in self.num_neighbours:
            at_least("item_knn.num_neighbours", number, 1)
        for shrinkage in self.shrinkage:
            at_least("item_knn.shrinkage", shrinkage, 0)


@dataclass(kw_only=True)
class EaseConfig:
    """Settings of recsys.baselines.Ease."""

    regularization: list[float] = MISSING  # lambda
    max_items: int = MISSING  # larger catalogues are skipped

    def __post_init__(self) -> None:
        """Check the ranges."""
        _filled("ease.regularization", self.regularization)
        for strength in self.regularization:
            above("ease.regularization", strength, 0)
        at_least("ease.max_items", self.max_items, 1)


@dataclass(kw_only=True)
class BaselinesConfig(PrepareConfig):
    """Score rankings without a trained tower."""

    systems: list[str] = MISSING  # beside popularity, which is always there
    validate_at: int = MISSING  # k of the validation recall that chooses among listed settings
    refit: bool = MISSING  # at test, learn from validation too, once the settings are chosen
    recent_popularity: RecentPopularityConfig = MISSING
    item_knn: ItemKnnConfig = MISSING
    ease: EaseConfig = MISSING
    evaluation: EvaluationConfig = MISSING
    tracking: TrackingConfig = MISSING

    def __post_init__(self) -> None:
        """Check the choices."""
        super().__post_init__()
        for system in self.systems:
            one_of("systems", system, SYSTEMS)
        if len(set(self.systems)) < len(self.systems):
            raise ConfigError(f"systems must hold each name once, got {self.systems}.")
        at_least("validate_at", self.validate_at, 1)


def _filled(key: str, values: Sequence[float]) -> None:
    if not values:
        raise ConfigError(f"{key} must hold at least one value, got none.")
