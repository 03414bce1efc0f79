"""From logs and tables as read to a prepared data set."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.catalogue import Assignment, assign_items, assign_users, build_entities
from recsys.data.coded_log import PARTS, RESERVED, CodedLog, code_log, concatenate_parts
from recsys.data.dataset import Entities
from recsys.data.events import Events
from recsys.data.feature_columns import whole_column
from recsys.data.feature_schema import FeatureOptions
from recsys.data.features import FeatureSchema
from recsys.data.filters import FilterSettings, filter_log
from recsys.data.leakage import find_leaks
from recsys.data.manifest import describe_counts, describe_sources
from recsys.data.raw import RawEntities, RawLog
from recsys.data.split_settings import TRAIN, Split, SplitSettings
from recsys.data.splits import describe_split, split_log
from recsys.data.storage import write_prepared
from recsys.data.summary import find_warnings, measure_log, summarise
from recsys.foundations import ConfigError, DataError

Options = Mapping[str, FeatureOptions]


def prepare_dataset(
    raw: RawLog,
    *,
    items: RawEntities | None,
    users: RawEntities | None,
    output: Path,
    filters: FilterSettings,
    split: SplitSettings,
    seed: int,
    exclude_seen: bool,
    validation: RawLog | None = None,
    test: RawLog | None = None,
    item_features: Options | None = None,
    user_features: Options | None = None,
    context_features: Options | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Path:
    """Filter, split, number and encode; write the data set, replacing `output` in one step.

    Features, vocabularies of values and counts are learnt from the training part alone.

    Args:
        raw: The log; with the split "given" its training part.
        items: Table of items, or None.
        users: Table of users, or None.
        output: The folder to write.
        filters: Which interactions are left out.
        split: How the log is split.
        seed: Of the split and of the order of the rows.
        exclude_seen: Whether items that a user had already are left out of what is recommended.
        validation: With the split "given": its validation part.
        test: With the split "given": its test part.
        item_features: Column of the items' table -> how to encode it.
        user_features: Column of the users' table -> how to encode it.
        context_features: Context column of the log -> how to encode it; those that are not
            named are encoded as their type says.
        reading: How the sources were read (column names and so on); kept in the manifest.

    Returns:
        `output`.

    Raises:
        ConfigError: The split needs what the log lacks.
        DataError: Nothing is left, or a feature column does not hold what its kind needs.
    """
    given = {"train": raw, "validation": validation, "test": test}
    logs = {name: part for name, part in given.items() if part is not None}
    table, parts = _join(logs, split)
    log, filter_reports = filter_log(code_log(table, parts), filters, exclude_seen=exclude_seen)
    division = split_log(log, raw.clock, split, seed, _table_ids(items))
    item_rows, item_entities = _build_items(log, division, items, item_features or {}, seed)
    user_rows, user_entities = _build_users(log, division, users, user_features or {}, seed)
    context, schema = _fit_context(log, division, table, context_features or {})
    events = _build_events(
        log,
        division,
        users=user_rows.rows_of_codes[log.users],
        items=item_rows.rows_of_codes[log.items],
        context=context,
        schema=schema,
    )
    manifest = {
        "seed": seed,
        "clock": raw.clock,
        "exclude_seen": exclude_seen,
        "reading": dict(reading or {}),
        "filters": filter_reports,
        "split": describe_split(division, split, raw.clock),
        "statistics": measure_log(log, raw.clock, item_entities.counts[: item_rows.num_main]),
        "leakage": find_leaks(log, division, raw.clock),
        **describe_counts(user_rows, item_rows, events),
        **describe_sources(logs, items, users),
    }
    manifest["warnings"] = [*manifest["warnings"], *find_warnings(manifest)]
    manifest["summary"] = summarise(manifest)
    return write_prepared(
        output, users=user_entities, items=item_entities, parts=events, manifest=manifest
    )


def _join(
    logs: Mapping[str, RawLog], split: SplitSettings
) -> tuple[pa.Table, NDArray[np.int8] | None]:
    if split.rule == "given":
        return concatenate_parts(logs)
    if len(logs) > 1:
        raise ConfigError(
            f"`split.rule` must be given where the parts are read apart, got {split.rule}."
        )
    return logs["train"].table, None


def _table_ids(items: RawEntities | None) -> pa.LargeStringArray | None:
    return None if items is None else whole_column(items.table["id"])


def _build_items(
    log: CodedLog, division: Split, raw: RawEntities | None, options: Options, seed: int
) -> tuple[Assignment, Entities]:
    _check_table(raw, options, "item")
    if division.rule == "cold_items" and not options:
        raise ConfigError(
            "`split.rule` must not be cold_items where items have no feature: an item that is held "
            "out is known by its features alone."
        )
    trained = np.bincount(log.items[division.parts == TRAIN], minlength=len(log.item_ids))
    used = np.bincount(log.items, minlength=len(log.item_ids))
    ids = None if raw is None else raw.table["id"]
    rows = assign_items(
        log.item_ids, trained > 0, used > 0, ids, has_features=bool(options), seed=seed
    )
    with _naming_the_table("of items"):
        return rows, build_entities(rows, trained, raw, options)


def _build_users(
    log: CodedLog, division: Split, raw: RawEntities | None, options: Options, seed: int
) -> tuple[Assignment, Entities]:
    _check_table(raw, options, "user")
    trained = np.bincount(log.users[division.parts == TRAIN], minlength=len(log.user_ids))
    used = np.bincount(log.users, minlength=len(log.user_ids))
    ids = None if raw is None else raw.table["id"]
    rows = assign_users(
        log.user_ids, trained > 0, used > 0, ids, has_features=bool(options), seed=seed
    )
    with _naming_the_table("of users"):
        return rows, build_entities(rows, trained, raw, options)


@contextlib.contextmanager
def _naming_the_table(which: str) -> Iterator[None]:
    """Say in a refusal of a feature column which table it is of."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{str(error).rstrip('.')}, in the table {which}.") from error


def _check_table(raw: RawEntities | None, options: Options, what: str) -> None:
    if raw is None and options:
        name = next(iter(options))
        raise DataError(f"The feature {name!r} is wanted, but no table of {what}s is given.")


def _fit_context(
    log: CodedLog, division: Split, table: pa.Table, options: Options
) -> tuple[pa.Table, FeatureSchema]:
    """Give the log's context columns, and their encoding as learnt from the training part."""
    names = [name for name in table.column_names if name not in RESERVED]
    absent = [name for name in options if name not in names]
    if absent:
        raise DataError(
            f"The log has no context column {absent[0]!r}; it has {', '.join(names) or 'none'}."
        )
    context = table.select(names)
    wanted = {name: options.get(name, FeatureOptions()) for name in names}
    with _naming_the_table("of interactions"):
        return context, FeatureSchema.fit(
            _rows(context, log.input_rows[division.parts == TRAIN]), wanted
        )


def _build_events(
    log: CodedLog,
    division: Split,
    *,
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    context: pa.Table,
    schema: FeatureSchema,
) -> dict[str, Events]:
    """Give the events of each part, sorted."""
    order = log.order(users)
    part_in_order = division.parts[order]
    events = {}
    for code, name in enumerate(PARTS):
        places = order[part_in_order == code]
        if len(places) or name in ("train", "validation", "test"):
            events[name] = Events(
                users[places],
                items[places],
                None if log.timestamps is None else log.timestamps[places],
                None if log.weights is None else log.weights[places],
                schema.encode(_rows(context, log.input_rows[places])),
            )
    weights = events["train"].weights
    if weights is not None and not weights.any():
        raise DataError("All training weights are 0, so that nothing would be learnt.")
    return events


def _rows(context: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    """Take rows; a table without columns would forget how many."""
    return context.take(places) if context.num_columns else pa.table({"row": places})
