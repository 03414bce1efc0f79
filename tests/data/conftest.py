"""Logs on disk in tiny blocks, and their rows as lists in the order of the input."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data import FilterSettings, RawLog
from recsys.data.coded_log import CodedLog
from recsys.data.column_file import ColumnFile
from recsys.data.filters import filter_log
from recsys.data.memory_budget import MemoryBudget
from recsys.data.spilled_log import spill_logs
from recsys.data.work_folder import work_folder


class TinyBudget(MemoryBudget):
    """So little memory that every log has several blocks and windows."""

    def events_at_once(self, num_ids: int, bytes_an_event: int) -> int:
        return 20


TINY = TinyBudget(10**9, is_given=False)


@dataclass(frozen=True)
class OpenLog:
    """A filtered log while its files are there.

    Attributes:
        log: As filters leave it.
        reports: Of the filters.
    """

    log: CodedLog
    reports: list[dict[str, Any]]

    def column(self, name: str, column: ColumnFile | None = None) -> list[Any]:
        """Give a column in input order: user, item (ids) or one of the log's own or `column`."""
        order = np.argsort(self.log.columns["row"].map())
        if name == "user":
            codes = np.repeat(np.arange(len(self.log.counts)), self.log.counts)
            return list(self.log.user_ids.texts.take(pa.array(codes[order])).to_pylist())
        values: NDArray[Any] = (column or self.log.columns[name]).map()[order]
        if name == "item":
            return list(self.log.item_ids.texts.take(pa.array(values)).to_pylist())
        return list(values.tolist())


Open: TypeAlias = Callable[..., AbstractContextManager[OpenLog]]


@pytest.fixture(scope="session")
def open_log(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Give a function that opens a log: of a table, or of a table for each part.

    Its other arguments are those of `FilterSettings`, where pairs are kept if not said otherwise,
    and `exclude_seen`.
    """
    folder = tmp_path_factory.mktemp("logs")

    @contextmanager
    def open_(
        tables: pa.Table | Mapping[str, pa.Table], *, exclude_seen: bool = True, **filters: Any
    ) -> Iterator[OpenLog]:
        given = {"train": tables} if isinstance(tables, pa.Table) else tables
        clock = "time" if "timestamp" in given["train"].column_names else "none"
        logs = {part: RawLog(table, clock, {}, len(table), []) for part, table in given.items()}
        settings = FilterSettings(**{"duplicates": "keep_all"} | filters)
        with_parts = not isinstance(tables, pa.Table)
        with pytest.MonkeyPatch.context() as patch, work_folder(folder / "output") as work:
            for name in ("coded_log.ROWS_AT_ONCE", "spilled_log.ROWS_AT_ONCE"):
                patch.setattr(f"recsys.data.{name}", 7)
            patch.setattr("recsys.data.user_partitions._ROWS_A_FLUSH", 7)
            spilled = spill_logs(logs, work, TINY, with_rows=True, with_parts=with_parts)
            yield OpenLog(*filter_log(spilled, settings, exclude_seen=exclude_seen))

    return open_
