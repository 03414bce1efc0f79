"""Settings of the dataset, split and features groups: types and ranges."""

import codecs
from dataclasses import dataclass, field, fields
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import at_least, between, one_of, share
from recsys.data import LEAST_MEMORY_GB, FeatureOptions
from recsys.foundations import ArgumentError, ConfigError

PATH = {"path": True}  # resolved from where the user stands
PATH_OR_ID = PATH | {"or_id": True}  # a path if a file stands there, else an id


@dataclass(kw_only=True)
class ColumnsConfig:
    """The user's column names; null: the files have no such column."""

    user: str = MISSING
    item: str = MISSING
    timestamp: str | None = MISSING
    rating: str | None = MISSING
    weight: str | None = MISSING
    event: str | None = MISSING  # the kind of event: click, purchase, ...
    item_table_id: str | None = MISSING  # the id column of the item table; null: as `item`
    user_table_id: str | None = MISSING  # the id column of the user table; null: as `user`


@dataclass(kw_only=True)
class FileFormatConfig:
    """How text files are written; Parquet needs none of it."""

    format: str = MISSING  # auto: by suffix
    separator: str | None = MISSING  # null: by format
    header: bool = MISSING
    names: list[str] = MISSING  # the columns of files without a header
    encoding: str = MISSING

    def __post_init__(self) -> None:
        """Check the choices."""
        one_of("dataset.file.format", self.format, ("auto", "csv", "tsv", "parquet"))
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ConfigError(
                f"dataset.file.encoding must be a text encoding, got {self.encoding!r}."
            ) from error


@dataclass(kw_only=True)
class DatasetConfig:
    """What every dataset choice has."""

    name: str = MISSING  # stands in folder names and in the tracking store
    prepared_root: str = field(default=MISSING, metadata=PATH)  # prepared datasets, to be reused
    min_user_interactions: int = MISSING
    min_item_interactions: int = MISSING
    duplicates: str = MISSING
    exclude_seen: bool = MISSING  # false: repeats are the point
    on_bad_rows: str = MISSING
    memory_gb: float | None = MISSING  # of prepare, in 10^9 bytes; null: half of what is free

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("dataset.min_user_interactions", self.min_user_interactions, 1)
        at_least("dataset.min_item_interactions", self.min_item_interactions, 1)
        policies = ("auto", "keep_first", "keep_last", "keep_all", "sum_weights")
        one_of("dataset.duplicates", self.duplicates, policies)
        one_of("dataset.on_bad_rows", self.on_bad_rows, ("error", "drop"))
        if self.memory_gb is not None:
            at_least("dataset.memory_gb", self.memory_gb, LEAST_MEMORY_GB)


@dataclass(kw_only=True)
class Ml100kConfig(DatasetConfig):
    """MovieLens-100K, fetched or taken from GroupLens's archive."""

    archive: str | None = field(default=MISSING, metadata=PATH)
    cache_dir: str = field(default=MISSING, metadata=PATH)
    min_rating: float | None = MISSING


@dataclass(kw_only=True)
class SyntheticConfig(DatasetConfig):
    """Made-up interactions with a planted structure and Zipf popularity."""

    num_users: int = MISSING
    num_items: int = MISSING
    num_interactions: int = MISSING
    num_clusters: int = MISSING
    zipf_exponent: float = MISSING
    seed: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        for key in ("num_users", "num_items", "num_interactions", "num_clusters"):
            at_least(f"dataset.{key}", getattr(self, key), 1)
        at_least("dataset.zipf_exponent", self.zipf_exponent, 0)


@dataclass(kw_only=True)
class TableConfig(DatasetConfig):
    """The user's own files: CSV, TSV or Parquet; a file, a list, a folder or a URI."""

    interactions: Any = field(default=MISSING, metadata=PATH)
    items: Any = field(default=MISSING, metadata=PATH)
    users: Any = field(default=MISSING, metadata=PATH)
    train: Any = field(default=MISSING, metadata=PATH)  # the parts of split=given
    validation: Any = field(default=MISSING, metadata=PATH)
    test: Any = field(default=MISSING, metadata=PATH)
    columns: ColumnsConfig = MISSING
    file: FileFormatConfig = MISSING
    timestamp_unit: str = MISSING
    timezone: str = MISSING
    min_rating: float | None = MISSING
    events: list[str] = MISSING

    def __post_init__(self) -> None:
        """Check the choices."""
        super().__post_init__()
        units = ("auto", "s", "ms", "us", "ns", "iso", "order")
        one_of("dataset.timestamp_unit", self.timestamp_unit, units)
        if self.events and self.columns.event is None:
            raise ConfigError("dataset.events needs dataset.columns.event, which is null.")
        for key in ("interactions", "items", "users", "train", "validation", "test"):
            check_paths(f"dataset.{key}", getattr(self, key))
        if self.interactions is None and self.train is None:
            raise ConfigError(
                "dataset.interactions must be given: dataset.interactions=FILE; or, with "
                "split=given, dataset.train=FILE."
            )
        if self.interactions is not None and self.train is not None:
            raise ConfigError("dataset.interactions and dataset.train exclude each other.")


def check_paths(key: str, value: Any) -> None:
    """Check that a value is null, a path, or a list of paths."""
    texts = value if isinstance(value, list) else [value]
    if value is not None and not (texts and all(isinstance(text, str) and text for text in texts)):
        raise ConfigError(f"{key} must be a path or a list of paths, got {value!r}.")


_RULES = (
    "auto",
    "temporal",
    "leave_last_out",
    "strong_generalization",
    "cold_items",
    "given",
    "random",
)


@dataclass(kw_only=True)
class SplitConfig:
    """Which interactions train, validate and test."""

    rule: str = MISSING
    # temporal, random: of the interactions; strong_generalization: of users; cold_items: of items
    validation_share: float = MISSING
    test_share: float = MISSING
    validation_from: str | None = MISSING  # temporal: an instant in place of the shares
    test_from: str | None = MISSING
    fold_in: float = MISSING  # strong_generalization: share of a held-out user's events
    fold_in_order: str = MISSING  # strong_generalization: which ones, the oldest or any
    seed: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        one_of("split.rule", self.rule, _RULES)
        one_of("split.fold_in_order", self.fold_in_order, ("time", "random"))
        share("split.validation_share", self.validation_share)
        share("split.test_share", self.test_share)
        between("split.fold_in", self.fold_in, 0, 1)
        if not self.validation_share + self.test_share < 1:
            total = self.validation_share + self.test_share
            raise ConfigError(
                f"split.validation_share + split.test_share must be below 1, got {total:g}."
            )


@dataclass(kw_only=True)
class FeatureConfig:
    """How one column becomes a feature."""

    kind: str = "auto"
    min_count: int = 1  # rarer values share the out-of-vocabulary row
    max_vocabulary: int | None = None
    num_buckets: int | None = None  # bucket: quantiles; text: rows of the n-gram table
    separator: str | None = None  # multi given as text, such as Action|Drama

    def __post_init__(self) -> None:
        """Check the ranges."""
        try:
            FeatureOptions(**vars(self))
        except ArgumentError as error:
            raise ConfigError(f"features: {error}") from error


@dataclass(kw_only=True)
class FeaturesConfig:
    """Columns of the item, user and interaction tables that become features."""

    infer: bool = MISSING  # columns of the item and user tables that are not named below
    items: dict[str, Any] = MISSING  # column -> a kind, or the keys of FeatureConfig
    users: dict[str, Any] = MISSING
    context: dict[str, Any] = MISSING  # columns of the log

    def __post_init__(self) -> None:
        """Turn what was written into FeatureConfig."""
        for group in ("items", "users", "context"):
            written = getattr(self, group)
            setattr(
                self, group, {n: _feature(f"features.{group}.{n}", v) for n, v in written.items()}
            )


def _feature(key: str, value: Any) -> FeatureConfig:
    given = {"kind": value} if isinstance(value, str) else value
    known = [item.name for item in fields(FeatureConfig)]
    if not isinstance(given, dict) or not given.keys() <= set(known):
        raise ConfigError(f"{key} must be a kind, or hold {', '.join(known)}; got {value!r}.")
    try:
        return FeatureConfig(**given)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{key}: {error}") from error
