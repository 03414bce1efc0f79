"""The checks of a log's rows, batch by batch: what is left out, refused and kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.bad_rows import BadRows, RowCheck
from recsys.data.clocks import TimeReader
from recsys.data.id_kinds import read_ids
from recsys.data.ids import ids_as_text
from recsys.data.log_options import LogOptions
from recsys.data.malformed_rows import WRONG_FIELDS, MalformedRows
from recsys.data.numbers import as_numbers

EVENTS, RATINGS = "event of another kind", "below the rating threshold"


@dataclass
class LogCleaner:
    """Takes bad and unwanted rows out of batches and counts them.

    Attributes:
        options: How the rows are understood.
        kinds: The forms of `user_id` and `item_id` (see `id_kinds`).
        times: Reads the time column; None where there is none.
        has_weights: Whether there is a column of weights.
        bad: Bad rows so far.
        unwanted: Reason -> rows left out that are no bad ones.
        num_rows: Rows looked at.
    """

    options: LogOptions
    kinds: Mapping[str, str]
    times: TimeReader | None
    has_weights: bool
    bad: BadRows = field(default_factory=BadRows)
    unwanted: dict[str, int] = field(default_factory=dict)
    num_rows: int = 0

    def begin_file(self, name: str) -> None:
        """Begin with the rows of a file."""
        self._file, self._row = name, 0
        self._bad, self._unwanted = BadRows(), dict.fromkeys((EVENTS, RATINGS), 0)
        self._bad.expect(WRONG_FIELDS)

    def clean(self, table: pa.Table) -> pa.Table:
        """Give the good rows of the file's next ones, with the columns of `RawLog`."""
        check = RowCheck(self._file, table, self._bad, np.ones(len(table), bool), self._row)
        self._leave_unwanted(check)
        self._bad.num_rows += int(np.count_nonzero(check.keep))
        columns, options = self.options.columns, self.options
        given: dict[str, Any] = {
            "user_id": _ids(check, columns.user, "user", self.kinds["user_id"]),
            "item_id": _ids(check, columns.item, "item", self.kinds["item_id"]),
        }
        if self.times is not None:
            given["timestamp"] = _times(check, self.times)
        if self.has_weights:
            given["weight"] = _weights(check, str(columns.weight))
        given |= {name: table[name] for name in options.context}
        self._row += len(table)
        self.num_rows += len(table)
        cleaned = pa.table(given)
        return cleaned if check.keep.all() else cleaned.filter(pa.array(check.keep))

    def end_file(self, malformed: MalformedRows) -> None:
        """End the file; the rows that it lacks for their number of fields are bad ones."""
        malformed.note(self._bad, self._file)
        self.num_rows += malformed.count
        self.bad.join(self._bad)
        for reason, count in self._unwanted.items():
            if count:
                self.unwanted[reason] = self.unwanted.get(reason, 0) + count

    def _leave_unwanted(self, check: RowCheck) -> None:
        """Take out and count the rows of other events and those below the threshold."""
        options = self.options
        if options.events:
            name = str(options.columns.event)
            column, first_row = check.table[name], check.first_row
            kinds = ids_as_text(column, file=check.file, name=name, first_row=first_row)
            wanted = pa.array(options.events, pa.large_string())
            kept = pc.is_in(kinds, value_set=wanted).to_numpy()
            self._unwanted[EVENTS] += int(np.count_nonzero(check.keep & ~kept))
            np.logical_and(check.keep, kept, out=check.keep)
        if options.min_rating is not None:
            name = str(options.columns.rating)
            ratings, strange = as_numbers(check.table[name])
            check.bad.num_rows += int(np.count_nonzero(strange & check.keep))
            check.leave_out("unreadable rating", strange, name)
            kept = ratings >= options.min_rating  # false for NaN: a missing rating fails
            self._unwanted[RATINGS] += int(np.count_nonzero(check.keep & ~kept))
            np.logical_and(check.keep, kept, out=check.keep)


def _ids(check: RowCheck, name: str, what: str, kind: str) -> pa.ChunkedArray:
    """Give ids in one form; rows without one are bad."""
    column = check.table[name]
    ids = read_ids(column, kind, file=check.file, name=name, first_row=check.first_row)
    check.leave_out(f"null {what} id", pc.is_null(ids).to_numpy(), name)
    if pa.types.is_large_string(ids.type):
        empty = pc.fill_null(pc.equal(ids, ""), False)
        check.leave_out(f"empty {what} id", empty.to_numpy(), name)
    return ids


def _times(check: RowCheck, reader: TimeReader) -> NDArray[np.int64]:
    """Give times; rows without a usable one are bad."""
    name = reader.column
    parsed, times = reader.read(check.table[name], file=check.file, first_row=check.first_row)
    check.leave_out("null timestamp", times.is_null, name)
    check.leave_out("unreadable timestamp", times.unreadable, name, hint=reader.unreadable_hint)
    hint = partial(reader.hint, parsed)
    check.leave_out("implausible timestamp", times.implausible, name, hint=hint)
    return times.values


def _weights(check: RowCheck, name: str) -> NDArray[np.float32]:
    """Give weights as float32; rows without a usable one are bad."""
    weights, strange = as_numbers(check.table[name])
    with np.errstate(over="ignore"):  # beyond float32 it is infinite, which is refused
        narrow = weights.astype(np.float32)
    check.leave_out("unreadable weight", strange, name)
    check.leave_out("null weight", np.isnan(narrow), name)
    check.leave_out("negative weight", narrow < 0, name)
    check.leave_out("infinite weight", np.isinf(narrow), name)
    return narrow
