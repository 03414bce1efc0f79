"""From logs and tables as read to a prepared data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.catalogue import Assignment, assign_items, assign_users, build_entities
from recsys.data.coded_log import PARTS, RESERVED, CodedLog, code_log, concatenate_parts
from recsys.data.dataset import Entities
from recsys.data.events import Events
from recsys.data.feature_schema import FeatureOptions
from recsys.data.features import FeatureSchema
from recsys.data.filters import FilterSettings, filter_log
from recsys.data.leakage import find_leaks
from recsys.data.raw import RawEntities, RawLog
from recsys.data.splits import (
    TEST_INPUT,
    TRAIN,
    VALIDATION_INPUT,
    Split,
    SplitSettings,
    describe_split,
    split_log,
)
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
    division = split_log(log, raw.clock, split, seed)
    item_rows = _assign(log, division, items, item_features or {}, seed, of_items=True)
    user_rows = _assign(log, division, users, user_features or {}, seed, of_items=False)
    item_counts = _count_rows(item_rows, log.items, division)
    user_counts = _count_rows(user_rows, log.users, division)
    entities = {
        "items": build_entities(item_rows.vocabulary, item_counts, items, item_features or {}),
        "users": build_entities(user_rows.vocabulary, user_counts, users, user_features or {}),
    }
    events = _build_events(
        log,
        division,
        table,
        user_rows=user_rows,
        item_rows=item_rows,
        options=context_features or {},
    )
    manifest = {
        "seed": seed,
        "clock": raw.clock,
        "exclude_seen": exclude_seen,
        "reading": dict(reading or {}),
        "filters": filter_reports,
        "split": describe_split(division, split, raw.clock),
        "counts": _describe_counts(user_rows, item_rows, events),
        "features": _describe_features(entities, events["train"]),
        "statistics": measure_log(log, raw.clock, item_counts[: item_rows.num_main]),
        "leakage": find_leaks(log, division, raw.clock),
        **_describe_sources(logs, items, users),
    }
    manifest["warnings"] = [*manifest["warnings"], *find_warnings(manifest)]
    manifest["summary"] = summarise(manifest)
    return write_prepared(output, **entities, parts=events, manifest=manifest)


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


def _assign(
    log: CodedLog,
    division: Split,
    raw: RawEntities | None,
    options: Options,
    seed: int,
    *,
    of_items: bool,
) -> Assignment:
    if raw is None and options:
        what, name = "item" if of_items else "user", next(iter(options))
        raise DataError(f"The feature {name!r} is wanted, but no table of {what}s is given.")
    assign = assign_items if of_items else assign_users
    ids, codes = (log.item_ids, log.items) if of_items else (log.user_ids, log.users)
    return assign(
        ids,
        np.bincount(codes[division.parts == TRAIN], minlength=len(ids)) > 0,
        np.bincount(codes, minlength=len(ids)) > 0,
        None if raw is None else raw.table["id"],
        has_features=bool(options),
        seed=seed,
    )


def _count_rows(rows: Assignment, codes: NDArray[np.int64], division: Split) -> NDArray[np.int64]:
    """Count the training events of each row."""
    trained = rows.rows_of_codes[codes[division.parts == TRAIN]]
    return np.bincount(trained, minlength=len(rows.vocabulary)).astype(np.int64)


def _build_events(
    log: CodedLog,
    division: Split,
    table: pa.Table,
    *,
    user_rows: Assignment,
    item_rows: Assignment,
    options: Options,
) -> dict[str, Events]:
    """Give the events of each part; the context is learnt from the training part."""
    users = user_rows.rows_of_codes[log.users]
    items = item_rows.rows_of_codes[log.items]
    order = log.order(users)
    part_in_order = division.parts[order]
    positions = {name: order[part_in_order == code] for code, name in enumerate(PARTS)}
    for code in (VALIDATION_INPUT, TEST_INPUT):
        if not len(positions[PARTS[code]]):
            del positions[PARTS[code]]
    names = [name for name in table.column_names if name not in RESERVED]
    absent = [name for name in options if name not in names]
    if absent:
        raise DataError(f"The log has no context column {absent[0]!r}; it has {names}.")
    context = table.select(names)
    wanted = {name: options.get(name, FeatureOptions()) for name in names}
    schema = FeatureSchema.fit(context.take(log.input_rows[positions["train"]]), wanted)
    return {
        name: Events(
            users[places],
            items[places],
            None if log.timestamps is None else log.timestamps[places],
            None if log.weights is None else log.weights[places],
            schema.encode(_rows(context, log.input_rows[places])),
        )
        for name, places in positions.items()
    }


def _rows(context: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    """Take rows; a table without columns would forget how many."""
    if context.num_columns:
        return context.take(places)
    return pa.table({"row": places})


def _describe_counts(
    users: Assignment, items: Assignment, events: Mapping[str, Events]
) -> dict[str, int]:
    counts = {"users": users.num_main, "items": items.num_main}
    counts |= {"known_users": len(users.vocabulary), "known_items": len(items.vocabulary)}
    counts |= {name: len(part) for name, part in events.items()}
    for name, rows in (("users", users), ("items", items)):
        counts[f"{name}_of_the_table_without_events"] = rows.untrained
        counts[f"{name}_of_the_table_left_out"] = rows.left_out
        counts[f"{name}_absent_from_the_table"] = rows.without_table
    return counts


def _describe_features(entities: Mapping[str, Entities], train: Events) -> dict[str, Any]:
    schemas = {name: whole.features.schema for name, whole in entities.items()}
    schemas["context"] = train.context.schema
    return {
        name: [{"name": spec.name, "kind": spec.kind, "size": spec.size} for spec in schema]
        for name, schema in schemas.items()
    }


def _describe_sources(
    logs: Mapping[str, RawLog], items: RawEntities | None, users: RawEntities | None
) -> dict[str, Any]:
    """Say where everything came from and what reading left out."""
    several = len(logs) > 1
    named: dict[str, RawLog | RawEntities] = {
        f"interactions ({name})" if several else "interactions": log for name, log in logs.items()
    }
    named |= {name: raw for name, raw in (("items", items), ("users", users)) if raw is not None}
    return {
        "sources": [{"table": name, **file} for name, raw in named.items() for file in raw.sources],
        "rows_read": sum(log.num_rows_read for log in logs.values()),
        "dropped": {name: dict(raw.dropped) for name, raw in named.items()},
        "warnings": [warning for raw in named.values() for warning in raw.warnings],
    }
