"""Types and ranges of `recsys update` and `recsys compact`."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import at_least, one_of, within
from recsys.config.schema_data import PATH, FileFormatConfig, check_paths
from recsys.config.schema_stages import StageConfig
from recsys.foundations import ConfigError


@dataclass(kw_only=True)
class RecallConfig:
    """How index recall is measured, and how far it may fall."""

    k: int = MISSING
    num_queries: int = MISSING  # users asked, at most
    drift: float = MISSING  # below what it was when the index was trained

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("recall.k", self.k, 1)
        at_least("recall.num_queries", self.num_queries, 1)
        within("recall.drift", self.drift, 0, 1)


@dataclass(kw_only=True)
class UpdateConfig(StageConfig):
    """Add, replace and withdraw items of a bundle, as a new bundle."""

    bundle: str = field(default=MISSING, metadata=PATH)
    items: Any = field(default=MISSING, metadata=PATH)
    remove: Any = field(default=MISSING, metadata=PATH | {"or_ids": True})
    id_column: str | None = MISSING  # null: as in training
    list_separator: str = MISSING  # in text files, where training met lists
    on_unknown: str = MISSING
    on_bad_rows: str = MISSING
    max_share: float = MISSING  # of items beside the index, above which compaction is advised
    recall: RecallConfig = MISSING
    file: FileFormatConfig = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        if self.items is None and self.remove is None:
            raise ConfigError("update needs items=FILE, remove=FILE or remove=[ID,...], or both.")
        _check_removed(self.remove)
        check_paths("items", self.items)
        if self.list_separator == "":
            raise ConfigError("list_separator must not be empty.")
        one_of("on_unknown", self.on_unknown, ("error", "skip"))
        one_of("on_bad_rows", self.on_bad_rows, ("error", "drop"))
        within("max_share", self.max_share, 0, 1)


def _check_removed(value: Any) -> None:
    """Check that there is a file, or a list of ids."""
    if isinstance(value, list):
        if any(one is None or str(one).strip() == "" for one in value):
            raise ConfigError("remove must hold no empty id.")
    elif value is not None and not isinstance(value, str | int | float):
        raise ConfigError(f"remove must be a file or a list of ids, got {value!r}.")


@dataclass(kw_only=True)
class CompactConfig(StageConfig):
    """Fold the changes of a bundle into its index, as a new bundle."""

    bundle: str = field(default=MISSING, metadata=PATH)
    recall: RecallConfig = MISSING
