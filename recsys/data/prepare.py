"""From logs and tables as read to a prepared data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.context_events import encode_context, fit_context
from recsys.data.event_columns import PartColumns, order_events
from recsys.data.events import Events
from recsys.data.feature_columns import whole_column
from recsys.data.feature_schema import FeatureOptions
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.filters import FilterSettings, filter_log
from recsys.data.known_entities import Options, build_items, build_users, naming_the_table
from recsys.data.leakage import find_leaks
from recsys.data.manifest import describe_counts, describe_sources
from recsys.data.memory_budget import MemoryBudget
from recsys.data.pair_counts import count_pairs
from recsys.data.part_counts import PartCounts
from recsys.data.raw import LogSource, RawEntities
from recsys.data.spilled_log import spill_logs
from recsys.data.split_settings import Split, SplitSettings
from recsys.data.splits import describe_split, needs_input_order, split_log
from recsys.data.storage import check_replaceable, write_prepared
from recsys.data.summary import find_warnings, measure_log, summarise
from recsys.data.work_folder import WorkFolder, work_folder
from recsys.foundations import ConfigError, DataError


def prepare_dataset(
    raw: LogSource,
    *,
    items: RawEntities | None,
    users: RawEntities | None,
    output: Path,
    filters: FilterSettings,
    split: SplitSettings,
    seed: int,
    exclude_seen: bool,
    validation: LogSource | None = None,
    test: LogSource | None = None,
    item_features: Options | None = None,
    user_features: Options | None = None,
    context_features: Options | None = None,
    reading: Mapping[str, Any] | None = None,
    memory_gb: float | None = None,
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
        memory_gb: See `MemoryBudget`. What is written does not depend on it.

    Returns:
        `output`.

    Raises:
        ConfigError: The split needs what the log lacks, or the folder holds something else.
        DataError: Nothing is left, or a feature column does not hold what its kind needs.
    """
    given = {"train": raw, "validation": validation, "test": test}
    logs = {name: part for name, part in given.items() if part is not None}
    _check_parts(logs, split)
    check_replaceable(output)
    budget = MemoryBudget.of(memory_gb)
    with work_folder(output) as work:
        spilled = spill_logs(
            logs,
            work,
            budget,
            with_rows=needs_input_order(raw.clock, split),
            with_parts=split.rule == "given",
        )
        log, reports = filter_log(spilled, filters, exclude_seen=exclude_seen)
        division, counts = split_log(log, raw.clock, split, seed, _table_ids(items))
        _check_cold_items(division, item_features or {})
        item_rows, item_entities = build_items(log, counts, items, item_features or {}, seed)
        user_rows, user_entities = build_users(log, counts, users, user_features or {}, seed)
        schema = _fit_context(log, division, spilled.context, context_features or {})
        candidates = item_entities.counts[: item_rows.num_main]
        manifest = {
            "seed": seed,
            "clock": raw.clock,
            "exclude_seen": exclude_seen,
            "reading": dict(reading or {}),
            "filters": reports,
            "split": describe_split(division, split, raw.clock),
            **_measure(log, division, counts, raw.clock, candidates),
            **describe_counts(user_rows, item_rows, counts),
            **describe_sources(logs, items, users),
        }
        manifest["warnings"] = [*manifest["warnings"], *find_warnings(manifest)]
        manifest["summary"] = summarise(manifest)
        if log.has("row") and not len(schema):  # no event is looked up in the input any more
            log = log.without_column("row")
        columns = order_events(
            log,
            division.parts,
            counts,
            user_rows=user_rows.rows_of_codes,
            item_rows=item_rows.rows_of_codes,
            num_users=len(user_entities),
            budget=budget,
        )
        events = {
            name: _map_events(part, schema, spilled.context, work) for name, part in columns.items()
        }
        _check_weights(events["train"])
        return write_prepared(
            output, users=user_entities, items=item_entities, parts=events, manifest=manifest
        )


def _check_parts(logs: Mapping[str, LogSource], split: SplitSettings) -> None:
    if split.rule != "given" and len(logs) > 1:
        raise ConfigError(
            f"`split.rule` must be given where the parts are read apart, got {split.rule}."
        )


def _table_ids(items: RawEntities | None) -> pa.LargeStringArray | None:
    return None if items is None else whole_column(items.table["id"])


def _measure(
    log: CodedLog,
    division: Split,
    counts: PartCounts,
    clock: str,
    candidates: NDArray[np.int64],
) -> dict[str, Any]:
    """Describe the log, and what its parts know of each other."""
    pairs = count_pairs(log, division.parts)
    return {
        "statistics": measure_log(log, clock, candidates, pairs.distinct),
        "leakage": find_leaks(log, division, clock, counts, pairs),
    }


def _check_cold_items(division: Split, options: Options) -> None:
    if division.rule == "cold_items" and not options:
        raise ConfigError(
            "`split.rule` must not be cold_items where items have no feature: an item that is held "
            "out is known by its features alone."
        )


def _fit_context(
    log: CodedLog, division: Split, context: pa.Table, options: Options
) -> FeatureSchema:
    """Learn the encoding of the log's context columns from the training part."""
    names = context.column_names
    absent = [name for name in options if name not in names]
    if absent:
        raise DataError(
            f"The log has no context column {absent[0]!r}; it has {', '.join(names) or 'none'}."
        )
    wanted = {name: options.get(name, FeatureOptions()) for name in names}
    with naming_the_table("of interactions"):
        return fit_context(log, division.parts, context, wanted)


def _map_events(
    part: PartColumns, schema: FeatureSchema, context: pa.Table, work: WorkFolder
) -> Events:
    columns = {name: column.map() for name, column in part.columns.items()}
    return Events(
        columns["user"],
        columns["item"],
        columns.get("timestamp"),
        columns.get("weight"),
        encode_context(schema, context, columns["row"], work)
        if len(schema)
        else FeatureTable.missing(schema, len(part)),
        part.offsets,
    )


def _check_weights(train: Events) -> None:
    if train.weights is not None and not train.weights.any():
        raise DataError("All training weights are 0, so that nothing would be learnt.")
