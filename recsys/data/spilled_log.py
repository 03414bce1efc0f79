"""A log as it was read, spread over the disk by user, and its way into order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.coded_log import DTYPES, PARTS, ROWS_AT_ONCE, Block, CodedLog, LogWriter
from recsys.data.context_file import ContextFile
from recsys.data.feature_columns import whole_column
from recsys.data.id_coder import IdCoder, make_id_coder
from recsys.data.id_kinds import common_kind
from recsys.data.id_lists import IdArray, KnownIds, make_id_list
from recsys.data.log_layout import LogLayout
from recsys.data.memory_budget import MemoryBudget
from recsys.data.raw import LogSource, ReadAgain
from recsys.data.repeated_pairs import PairFilter
from recsys.data.user_groups import sort_group
from recsys.data.user_partitions import UserPartitions
from recsys.data.work_folder import WorkFolder
from recsys.foundations import DataError, Progress

_IDS = ("user_id", "item_id")


@dataclass(frozen=True)
class SpilledLog:
    """All rows of a log, by user.

    Attributes:
        work: The folder of the files.
        partitions: The rows; items are codes.
        user_kind: The form of the users' ids (see `id_kinds`).
        item_ids: By code.
        columns: Names of the columns beside the user, of `coded_log.DTYPES`.
        context: The context columns in input order, mapped; without columns where there are none.
    """

    work: WorkFolder
    partitions: UserPartitions
    user_kind: str
    item_ids: KnownIds
    columns: tuple[str, ...]
    context: pa.Table

    def __len__(self) -> int:
        return len(self.partitions)


def spill_logs(
    logs: Mapping[str, LogSource],
    work: WorkFolder,
    budget: MemoryBudget,
    *,
    with_rows: bool,
    with_parts: bool,
) -> SpilledLog:
    """Read logs, one behind the other, and spread their rows over partitions by user.

    Args:
        logs: Part -> its log; a single one where the parts are not given.
        work: The folder for the files.
        budget: What the rows of the users that are sorted together must fit.
        with_rows: Whether it is kept where each row stood in the input; with context columns it
            always is.
        with_parts: Whether it is kept which log each row is of.

    Raises:
        DataError: The logs differ in their columns, a row cannot be read, or there is none.
        ConfigError: The budget is too small.
    """
    layout = LogLayout.of(logs, has_parts=with_parts)
    kinds = {name: common_kind(log.id_kinds()[name] for log in logs.values()) for name in _IDS}
    columns = layout.columns(with_rows=with_rows or bool(layout.context.names))
    dtypes = {name: DTYPES[name] for name in columns}
    partitions = UserPartitions(work, kinds["user_id"], dtypes)
    with ContextFile(work, layout.context) as context:
        while True:
            items = make_id_coder(kinds["item_id"], work)
            try:
                for part, log in logs.items():
                    for batch in log.batches(kinds):
                        rows = _columns_of(batch, items, partitions, PARTS.index(part))
                        partitions.add(_plain(batch["user_id"]), rows)
                        context.add(batch)
                break
            except ReadAgain:
                items.ids.remove()
                partitions.clear()
                context.clear()
    if not len(partitions):
        raise DataError("The log has no usable row.")
    budget.check_rows(int(partitions.sizes().max()))
    return SpilledLog(
        work,
        partitions,
        kinds["user_id"],
        KnownIds(items.ids),
        columns,
        context.map(),
    )


def order_log(spilled: SpilledLog, pairs: PairFilter) -> CodedLog:
    """Bring the rows of a log into order, and make pairs unique; the spilled files go.

    Args:
        spilled: Read to the end.
        pairs: Which of repeated pairs stay.

    Returns:
        The log of the rows that stay.
    """
    work = spilled.work
    user_ids = make_id_list(spilled.user_kind, work)
    writer = LogWriter(work, pairs.begin(spilled.columns), len(spilled.item_ids))
    with Progress("sorting by user", len(spilled), "rows") as bar:
        for group in spilled.partitions.groups(ROWS_AT_ONCE):
            ids, counts, columns = sort_group(group)
            block = pairs.apply(Block(0, len(user_ids), counts, columns))
            user_ids.append(ids)
            writer.append(block.counts, block.columns)
            bar.advance(len(group.users))
    spilled.partitions.remove()
    log = CodedLog(
        work,
        KnownIds(user_ids),
        spilled.item_ids,
        writer.counts,
        writer.item_counts,
        writer.columns,
        len(spilled),
        writer.time_range,
    )
    return pairs.finish(log)


def _columns_of(
    batch: pa.Table, items: IdCoder, partitions: UserPartitions, part: int
) -> dict[str, NDArray[Any]]:
    """Give the columns that the partitions hold."""
    size, first = batch.num_rows, len(partitions)
    columns: dict[str, NDArray[Any]] = {}
    for name in partitions.names:
        match name:
            case "item":
                columns[name] = items.code(_plain(batch["item_id"]))
            case "row":
                columns[name] = np.arange(first, first + size)
            case "part":
                columns[name] = np.full(size, part, np.int8)
            case "weight" if "weight" not in batch.column_names:
                columns[name] = np.ones(size, np.float32)
            case _:
                columns[name] = batch[name].to_numpy()
    return columns


def _plain(column: pa.ChunkedArray) -> IdArray:
    whole = whole_column(column)
    return whole if pa.types.is_large_string(whole.type) else np.asarray(whole)
