"""The clock of a log: one meaning of the time column over all its files.

What numbers mean is decided by most of them, which is known at the end only. Reading goes by the
first ones that are met, and by another meaning once more where these were not like most.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.shown_values import shown
from recsys.data.timestamps import (
    PER_SECOND,
    ParsedTimes,
    ResolvedTimes,
    count_by_unit,
    parse_times,
    recognise_unit,
    resolve_times,
    unit_that_fits,
)
from recsys.foundations import DataError


@dataclass
class TimeReader:
    """Reads the time column of a log, batch by batch, and looks at what it holds.

    Attributes:
        column: The column's name.
        unit: As declared; "auto": the unit in which most numbers are dates from 1971 to 2100.
        timezone: Zone of times without an offset; "": UTC.
        chosen: The unit that is taken for "auto"; None: that of the first numbers.
    """

    column: str
    unit: str
    timezone: str
    chosen: str | None = None
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PER_SECOND, 0))
    _has_numbers: bool = False
    _num_zoned: int = 0
    _num_local: int = 0
    _first_local: str = ""

    @property
    def kind(self) -> str:
        """Give "order" or "time"."""
        return "order" if self.unit == "order" else "time"

    @property
    def unreadable_hint(self) -> str:
        """Say what a time that cannot be read does not fit, as the end of a sentence."""
        return "" if self.unit == "auto" else f", which does not fit timestamp_unit={self.unit}"

    def read(
        self, column: pa.ChunkedArray, *, file: str, first_row: int
    ) -> tuple[ParsedTimes, ResolvedTimes]:
        """Read some rows of a file.

        Args:
            column: [N], the times.
            file: The file, for messages.
            first_row: The row of the file, from 0, that the column begins with.

        Raises:
            DataError: An order is declared and the column is of a type of dates.
        """
        parsed = parse_times(column)
        if self.unit == "order":
            if parsed.typed:
                raise DataError(
                    f"{file}: the column {self.column!r} is of type {column.type}, which is a "
                    "time; timestamp_unit=order needs integers."
                )
            return parsed, resolve_times(parsed, unit="order", timezone="", strict=True)
        self._look_at(parsed, column, file, first_row)
        strict = self.unit != "auto"
        unit = self.unit if strict else str(self.chosen)
        return parsed, resolve_times(parsed, unit=unit, timezone=self.timezone, strict=strict)

    def finish(self) -> list[str]:
        """Give sentences for the summary once all rows are read.

        Raises:
            DataError: Some times have an offset, others none, and no zone is declared.
        """
        if self.timezone or not self._num_local:
            return []
        if not self._num_zoned:
            return [
                f"Times in {self.column!r} have no offset and were read as UTC; dataset.timezone "
                "changes that."
            ]
        raise DataError(
            f"{self._first_local} without an offset from UTC, as {self._num_local} times do, while "
            f"{self._num_zoned} have one; set dataset.timezone (of a lookup: timezone) for those "
            "without."
        )

    def unit_of_most(self) -> str:
        """Give the unit of most numbers that were read, as `recognise_unit` does."""
        return recognise_unit(self._counts, has_numbers=self._has_numbers)

    def hint(self, parsed: ParsedTimes, row: int) -> str:
        """Say what may be wrong with an implausible time, as the end of a sentence."""
        if not parsed.is_number[row]:
            return ", which is not a date from 1971 to 2100"
        unit = self.unit if self.unit != "auto" else self.chosen
        if not unit:
            return ", which no unit makes a date from 1971 to 2100; is it timestamp_unit=order?"
        fitting = unit_that_fits(int(parsed.whole[row]))
        read_as = f"timestamp_unit={unit}" if self.unit != "auto" else f"{unit}, as most are"
        other = f", it looks like {fitting}" if fitting else ""
        return f", which is no date from 1971 to 2100 when read as {read_as}{other}"

    def _look_at(
        self, parsed: ParsedTimes, column: pa.ChunkedArray, file: str, first_row: int
    ) -> None:
        """Count what tells the unit and the offsets."""
        if self.unit == "auto":
            for unit, count in count_by_unit(parsed).items():
                self._counts[unit] += count
            self._has_numbers |= bool(parsed.is_number.any())
            if self.chosen is None or (self.chosen == "iso" and self._has_numbers):
                self.chosen = self.unit_of_most()
        num_local = int(np.count_nonzero(parsed.is_local))
        if num_local and not self._first_local:
            row = int(np.argmax(parsed.is_local))
            self._first_local = (
                f"{file}, row {first_row + row + 1}: column {self.column!r} holds "
                f"{shown(column[row])}"
            )
        self._num_local += num_local
        self._num_zoned += int(np.count_nonzero(parsed.is_zoned))


def read_moments(table: pa.Table, column: str, *, name: str) -> NDArray[np.int64] | None:
    """Read a time column of a table in memory as a log's is read whose unit is "auto".

    Args:
        table: N rows.
        column: The time column.
        name: What messages call the table.

    Returns:
        [N], int64, µs UTC; None where no unit makes a date of one of its numbers, so that they are
        an order at most.

    Raises:
        DataError: A row has no time or one that cannot be read, or some times have an offset from
            UTC and others none.
    """
    reader = TimeReader(column, "auto", "")
    parsed, times = reader.read(table[column], file=name, first_row=0)
    if reader.unit_of_most() == "":
        return None
    reader.finish()
    for bad, why in (
        (times.is_null, ""),
        (times.unreadable, ", which cannot be read as a time"),
        (times.implausible, None),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            value = "no value" if times.is_null[row] else shown(table[column][row])
            hint = reader.hint(parsed, row) if why is None else why
            raise DataError(f"{name}, row {row + 1}: column {column!r} holds {value}{hint}.")
    return times.values
