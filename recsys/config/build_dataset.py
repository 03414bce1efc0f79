"""The bridge from the dataset, split and features groups to a prepared dataset."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.config import schema_data
from recsys.config.flatten import to_plain
from recsys.config.schema_stages import PrepareConfig
from recsys.data import (
    DATASET_FORMAT,
    ColumnNames,
    FeatureOptions,
    FilterSettings,
    LogOptions,
    LogSource,
    RawEntities,
    SplitSettings,
    TableFormat,
    entities_from_table,
    fetch_ml100k,
    find_sources,
    infer_features,
    interactions_from_table,
    make_synthetic,
    open_interactions,
    prepare_dataset,
    read_entities,
)
from recsys.foundations import ArgumentError, ConfigError, canonical_json, sha256_text

log = logging.getLogger(__name__)
_DEFAULT_NAMES = ColumnNames()


@dataclass(frozen=True)
class Source:
    """What a dataset choice gives before it is prepared."""

    train: LogSource
    validation: LogSource | None
    test: LogSource | None
    items: RawEntities | None
    users: RawEntities | None


def build_prepared(config: PrepareConfig, output: Path) -> Path:
    """Read the dataset choice and prepare it into a folder."""
    dataset, features = config.dataset, config.features
    source = _read_source(dataset, tuple(features.context))
    return prepare_dataset(
        source.train,
        items=source.items,
        users=source.users,
        validation=source.validation,
        test=source.test,
        output=output,
        filters=FilterSettings(
            min_user_interactions=dataset.min_user_interactions,
            min_item_interactions=dataset.min_item_interactions,
            duplicates=dataset.duplicates,
        ),
        split=build_split(config.split),
        seed=config.split.seed,
        item_features=_features("items", features.items, features.infer, source.items),
        user_features=_features("users", features.users, features.infer, source.users),
        context_features=_options(features.context),
        exclude_seen=dataset.exclude_seen,
        reading=_without_paths(dataset),
        memory_gb=dataset.memory_gb,
    )


def find_or_prepare(config: PrepareConfig) -> Path:
    """Give the dataset named by `dataset_dir`, else the prepared form of the dataset choice.

    The latter is reused where the same settings and files were prepared before.
    """
    if config.dataset_dir is not None:
        return Path(config.dataset_dir)
    folder = prepared_folder(config)
    if (folder / "manifest.json").exists():
        log.info("the dataset was prepared before: %s", folder)
        return folder
    return build_prepared(config, folder)


def prepared_folder(config: PrepareConfig) -> Path:
    """Name the folder of a dataset choice after its settings, its files' content and its format."""
    dataset = config.dataset
    parts = [getattr(dataset, name, None) for name in _PATH_KEYS]
    files = [
        source.describe() for part in parts if part is not None for source in find_sources(part)
    ]
    content = [[file["sha256"], file["size_bytes"]] for file in files]
    groups = {name: to_plain(getattr(config, name)) for name in ("dataset", "split", "features")}
    groups["dataset"] = _without_paths(dataset)
    key = sha256_text(canonical_json([groups, content, DATASET_FORMAT]))[:12]
    return Path(dataset.prepared_root) / f"{dataset.name}-{key}"


_PATH_KEYS = ("interactions", "items", "users", "train", "validation", "test", "archive")


def _without_paths(dataset: schema_data.DatasetConfig) -> dict[str, Any]:
    left_out = ("prepared_root", "cache_dir", "memory_gb", *_PATH_KEYS)  # change nothing written
    return {key: to_plain(value) for key, value in vars(dataset).items() if key not in left_out}


def build_split(config: schema_data.SplitConfig) -> SplitSettings:
    """Turn the split group into the settings of a split."""
    settings = {key: value for key, value in vars(config).items() if key != "seed"}
    return SplitSettings(**settings)


def build_format(config: schema_data.FileFormatConfig) -> TableFormat:
    """Turn settings of text files into a table's form."""
    try:
        return TableFormat(**{**vars(config), "names": tuple(config.names)})
    except ArgumentError as error:
        raise ConfigError(f"dataset.file: {error}") from error


def build_columns(config: schema_data.ColumnsConfig) -> ColumnNames:
    """Turn the columns' names into those of a log."""
    return ColumnNames(
        user=config.user,
        item=config.item,
        timestamp=config.timestamp,
        rating=config.rating,
        weight=config.weight,
        event=config.event,
    )


def _read_source(dataset: schema_data.DatasetConfig, context: tuple[str, ...]) -> Source:
    match dataset:
        case schema_data.TableConfig():
            return _read_tables(dataset, context)
        case schema_data.Ml100kConfig():
            archive = None if dataset.archive is None else Path(dataset.archive)
            made: Any = fetch_ml100k(Path(dataset.cache_dir), archive)
            options = LogOptions(
                min_rating=dataset.min_rating,
                timestamp_unit="s",
                context=context,
                on_bad_rows=dataset.on_bad_rows,
            )
        case schema_data.SyntheticConfig():
            made = make_synthetic(
                num_users=dataset.num_users,
                num_items=dataset.num_items,
                num_interactions=dataset.num_interactions,
                num_clusters=dataset.num_clusters,
                zipf_exponent=dataset.zipf_exponent,
                seed=dataset.seed,
            )
            options = LogOptions(
                timestamp_unit="us", context=context, on_bad_rows=dataset.on_bad_rows
            )
        case _:
            raise ConfigError(f"dataset is of no known kind: {type(dataset).__name__}.")
    sources = getattr(made, "sources", [])
    log = interactions_from_table(made.interactions, options, name=dataset.name, sources=sources)
    items = entities_from_table(made.items, id_column="item_id", what="item")
    users = entities_from_table(made.users, id_column="user_id", what="user")
    return Source(log, None, None, items, users)


def _read_tables(dataset: schema_data.TableConfig, context: tuple[str, ...]) -> Source:
    def read(paths: Any) -> LogSource:
        return open_interactions(paths, options, format=form)

    def read_table(paths: Any, id_column: str | None, default: str, what: str) -> Any:
        if paths is None:
            return None
        name, bad = id_column or default, dataset.on_bad_rows
        return read_entities(paths, format=form, id_column=name, what=what, on_bad_rows=bad)

    form, columns = build_format(dataset.file), build_columns(dataset.columns)
    options = LogOptions(
        columns=columns,
        required=_required(dataset, columns),
        timestamp_unit=dataset.timestamp_unit,
        timezone=dataset.timezone,
        min_rating=dataset.min_rating,
        events=tuple(dataset.events),
        context=context,
        on_bad_rows=dataset.on_bad_rows,
    )
    return Source(
        read(dataset.interactions if dataset.train is None else dataset.train),
        None if dataset.validation is None else read(dataset.validation),
        None if dataset.test is None else read(dataset.test),
        read_table(dataset.items, dataset.columns.item_table_id, columns.item, "item"),
        read_table(dataset.users, dataset.columns.user_table_id, columns.user, "user"),
    )


def _required(dataset: schema_data.TableConfig, columns: ColumnNames) -> frozenset[str]:
    asked = required_columns(columns, dataset.timestamp_unit)
    if dataset.min_rating is not None and columns.rating is not None:
        asked |= {columns.rating}
    return asked


def required_columns(columns: ColumnNames, timestamp_unit: str) -> frozenset[str]:
    """Name the columns that were asked for: renamed ones, and a time whose unit is declared."""
    asked = {
        name
        for field, name in vars(columns).items()
        if name is not None and name != getattr(_DEFAULT_NAMES, field)
    }
    if timestamp_unit != "auto" and columns.timestamp is not None:
        asked.add(columns.timestamp)
    return frozenset(asked)


def _features(
    side: str,
    named: Mapping[str, schema_data.FeatureConfig],
    infer: bool,
    table: RawEntities | None,
) -> dict[str, FeatureOptions]:
    if table is None:
        if named:
            raise ConfigError(
                f"features.{side}.{next(iter(named))} needs a table of {side}: dataset.{side}=FILE."
            )
        return {}
    return (infer_features(table.table, but=("id",)) if infer else {}) | _options(named)


def _options(named: Mapping[str, schema_data.FeatureConfig]) -> dict[str, FeatureOptions]:
    return {name: FeatureOptions(**vars(options)) for name, options in named.items()}
