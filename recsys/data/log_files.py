"""A log in files that is read batch by batch, checked, and never held as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.clocks import TimeReader
from recsys.data.id_kinds import TEXT, id_kind
from recsys.data.log_cleaning import EVENTS, LogCleaner
from recsys.data.log_options import LogOptions
from recsys.data.malformed_rows import MalformedRows
from recsys.data.parts import Part, TablePart, join_columns
from recsys.data.raw import RawLog, ReadAgain
from recsys.data.sources import SourceFile
from recsys.foundations import DataError, Progress


class LogFiles:
    """A `LogSource` of files or of a table in memory.

    Args:
        parts: At least one; all have the columns that the options ask for.
        options: How the rows are understood.
        files: Where the parts came from, to be hashed once they were read; or what is to be said
            of where they came from.
    """

    def __init__(
        self,
        parts: Sequence[TablePart],
        options: LogOptions,
        files: Sequence[SourceFile] | Sequence[dict[str, Any]],
    ) -> None:
        self._parts, self._options, self._files = parts, options, files
        columns = options.columns
        self._has_weights = self._any_has(columns.weight)
        self._times: TimeReader | None = None
        if columns.timestamp is not None and self._any_has(columns.timestamp):
            self._times = TimeReader(columns.timestamp, options.timestamp_unit, options.timezone)
        self.dropped: dict[str, int] = {}
        self.num_rows_read = 0
        self.warnings: list[str] = []
        self._sources: list[dict[str, Any]] | None = None

    @property
    def clock(self) -> str:
        """Give "time", "order" or "none"."""
        return "none" if self._times is None else self._times.kind

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Give path, size_bytes and sha256 of each file; this reads them once more."""
        if self._sources is None:
            self._sources = [
                file.describe() if isinstance(file, SourceFile) else file for file in self._files
            ]
        return self._sources

    @property
    def schema(self) -> pa.Schema:
        """Give names and types of the columns of all parts together.

        Raises:
            DataError: A context column has types that do not go together.
        """
        columns = [("user_id", pa.large_string()), ("item_id", pa.large_string())]
        if self._times is not None:
            columns.append(("timestamp", pa.int64()))
        if self._has_weights:
            columns.append(("weight", pa.float32()))
        empty = [Part(part.name, part.schema.empty_table()) for part in self._parts]
        context = self._options.context
        return pa.schema(columns + [(name, join_columns(empty, name).type) for name in context])

    def id_kinds(self) -> dict[str, str]:
        """Give the forms in which the ids of all parts can be told apart."""
        columns = self._options.columns
        return {
            name: id_kind(part.schema.field(column).type for part in self._parts)
            for name, column in (("user_id", columns.user), ("item_id", columns.item))
        }

    def batches(self, kinds: Mapping[str, str]) -> Iterator[pa.Table]:
        """Give the good rows; see `LogSource.batches`."""
        return (part.table for part in self._clean_parts(kinds))

    def read(self) -> RawLog:
        """Read all rows into memory."""
        kinds = {"user_id": TEXT, "item_id": TEXT}
        while True:
            try:
                cleaned = list(self._clean_parts(kinds))
                break
            except ReadAgain:
                continue
        table = pa.table(
            {name: join_columns(cleaned, name) for name in cleaned[0].table.column_names}
        )
        return RawLog(
            table, self.clock, self.dropped, self.num_rows_read, self.sources, self.warnings
        )

    def _clean_parts(self, kinds: Mapping[str, str]) -> Iterator[Part]:
        """Give the good rows of every batch under the name of its file, then refuse bad ones."""
        cleaner = LogCleaner(self._options, kinds, self._fresh_times(), self._has_weights)
        num_good = 0
        with Progress("reading", sum(part.size_bytes for part in self._parts), "bytes") as bar:
            for part in self._parts:
                malformed = MalformedRows()
                cleaner.begin_file(part.name)
                yield Part(part.name, cleaner.clean(part.schema.empty_table()))
                for batch in part.batches(malformed, bar.advance):
                    rows = cleaner.clean(batch)
                    num_good += rows.num_rows
                    yield Part(part.name, rows)
                cleaner.end_file(malformed)
        self._finish(cleaner, num_good)

    def _fresh_times(self) -> TimeReader | None:
        """Give a reader that has seen nothing yet."""
        times = self._times
        if times is None:
            return None
        return TimeReader(times.column, times.unit, times.timezone, times.chosen)

    def _finish(self, cleaner: LogCleaner, num_good: int) -> None:
        """Refuse what is to be refused, and keep what is known of the log now."""
        times = cleaner.times
        if times is not None:
            if times.chosen is not None and times.unit_of_most() != times.chosen:
                self._times = replace(times, chosen=times.unit_of_most())
                raise ReadAgain
            self.warnings = times.finish()
        cleaner.bad.refuse(always=self._options.on_bad_rows == "error")
        if not num_good and cleaner.unwanted:
            raise DataError(self._nothing_left(cleaner))
        self.dropped = cleaner.unwanted | cleaner.bad.counts
        self.num_rows_read = cleaner.num_rows

    def _nothing_left(self, cleaner: LogCleaner) -> str:
        """Say which setting left nothing of a log, and what the log holds instead."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in cleaner.unwanted.items())
        text = f"{self._parts[0].name}: no row is left of {cleaner.num_rows} ({reasons})"
        if EVENTS in cleaner.unwanted:
            name = str(self._options.columns.event)
            present = self._event_kinds(name)
            kinds = ", ".join(map(repr, present[:5])) + (", ..." if len(present) > 5 else "")
            text += f"; dataset.events keeps {', '.join(map(repr, self._options.events))}, "
            text += f"the column {name!r} holds {kinds or 'no value'}"
        return text + "."

    def _event_kinds(self, name: str) -> list[str]:
        """Look for the kinds of event, until more are found than are shown."""
        present: dict[str, None] = {}
        for part in self._parts:
            for batch in part.batches(MalformedRows(), lambda _: None):
                found = pc.unique(batch[name].cast(pa.large_string())).to_pylist()
                present |= dict.fromkeys(kind for kind in found if kind is not None)
                if len(present) > 5:
                    return list(present)
        return list(present)

    def _any_has(self, column: str | None) -> bool:
        return any(column in part.schema.names for part in self._parts)
