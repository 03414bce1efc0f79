"""Settings of the command `baselines`: types and ranges."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, one_of
from recsys.config.schema_data import PATH
from recsys.config.schema_stages import PrepareConfig
from recsys.config.schema_training import EvaluationConfig, TrackingConfig
from recsys.foundations import ConfigError

SYSTEMS = ("recent_popularity", "own_items", "item_knn", "content_knn", "ease", "ials")


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
class OwnItemsConfig:
    """Settings of recsys.baselines.OwnItems."""

    decay: list[float] = MISSING  # an event counts decay ** age; 1: by frequency alone

    def __post_init__(self) -> None:
        """Check the ranges."""
        _decays("own_items.decay", self.decay)


@dataclass(kw_only=True)
class ContentKnnConfig:
    """Settings of recsys.baselines.ContentKnn."""

    decay: list[float] = MISSING  # an event of the history counts decay ** age

    def __post_init__(self) -> None:
        """Check the ranges."""
        _decays("content_knn.decay", self.decay)


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
class IalsConfig:
    """Settings of recsys.baselines.Ials."""

    dim: list[int] = MISSING  # factors
    regularization: list[float] = MISSING
    unobserved_weight: list[float] = MISSING  # of a pair without an event, beside 1 of one with
    iterations: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        for key in ("dim", "regularization", "unobserved_weight"):
            _filled(f"ials.{key}", getattr(self, key))
        for dim in self.dim:
            at_least("ials.dim", dim, 1)
        for key in ("regularization", "unobserved_weight"):
            for value in getattr(self, key):
                above(f"ials.{key}", value, 0)
        at_least("ials.iterations", self.iterations, 1)


@dataclass(kw_only=True)
class BaselinesConfig(PrepareConfig):
    """Score rankings without a trained tower, and a bundle's model beside them."""

    bundle: str | None = field(default=MISSING, metadata=PATH)
    systems: list[str] = MISSING  # beside popularity, which is always there
    validate_at: int = MISSING  # k of the validation recall that chooses among listed settings
    refit: bool = MISSING  # at test, learn from validation too, once the settings are chosen
    recent_popularity: RecentPopularityConfig = MISSING
    own_items: OwnItemsConfig = MISSING
    item_knn: ItemKnnConfig = MISSING
    content_knn: ContentKnnConfig = MISSING
    ease: EaseConfig = MISSING
    ials: IalsConfig = MISSING
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


def _decays(key: str, values: Sequence[float]) -> None:
    _filled(key, values)
    for decay in values:
        if not 0 < decay <= 1:
            raise ConfigError(f"{key} must be above 0 and at most 1, got {decay}.")


def _filled(key: str, values: Sequence[float]) -> None:
    if not values:
        raise ConfigError(f"{key} must hold at least one value, got none.")
