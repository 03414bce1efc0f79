"""Rows that cannot be used: counted by reason, refused or left out."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.shown_values import shown
from recsys.foundations import DataError


@dataclass
class BadRows:
    """The bad rows of a table, gathered file by file.

    Attributes:
        counts: Reason -> rows, in the order of the checks.
        first: Reason -> file, row in it (from 1, the header not counted), column and value of the
            first such row, and a hint.
        num_rows: Rows looked at.
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    num_rows: int = 0
    _checks: dict[str, None] = field(default_factory=dict)  # reasons in the order of the checks

    def expect(self, reason: str) -> None:
        """Note that rows were or will be looked at for a reason."""
        self._checks.setdefault(reason)

    def join(self, file: "BadRows") -> None:
        """Add the bad rows of a file that was read in several steps."""
        for reason in file._checks:
            if reason in file.counts:
                self.counts[reason] = self.counts.get(reason, 0) + file.counts[reason]
                self.first.setdefault(reason, file.first[reason])
        self.num_rows += file.num_rows

    def add(
        self,
        reason: str,
        bad: NDArray[np.bool_],
        *,
        file: str,
        name: str,
        column: pa.ChunkedArray,
        hint: str | Callable[[int], str] = "",
        first_row: int = 0,
    ) -> None:
        """Note rows of one file.

        Args:
            reason: Few words.
            bad: [N], which rows.
            file: The file.
            name: The column that is at fault.
            column: [N], the column's values as read.
            hint: What may be wrong, as the end of a sentence; or what says so of a position.
            first_row: The row of the file, from 0, that `column` begins with.
        """
        self.expect(reason)
        count = int(np.count_nonzero(bad))
        if not count:
            return
        self.counts[reason] = self.counts.get(reason, 0) + count
        if reason not in self.first:
            row = int(np.argmax(bad))
            value = shown(column[row])
            end = hint if isinstance(hint, str) else hint(row)
            where = f"{file}, row {first_row + row + 1}"
            self.first[reason] = f"{where}: column {name!r} holds {value}{end}"

    def refuse(self, *, always: bool) -> None:
        """Raise if there are bad rows and they are to be refused, or if no other row is left.

        Args:
            always: Whether one bad row is enough.

        Raises:
            DataError: The message names the first row of the first reason and counts all.
        """
        total = sum(self.counts.values())
        if not total or not (always or total == self.num_rows):
            return
        reason = next(iter(self.counts))
        counted = ", ".join(f"{count} {why}" for why, count in self.counts.items())
        leave = "; on_bad_rows=drop leaves them out" if total < self.num_rows else ""
        raise DataError(
            f"{self.first[reason]} ({reason}); bad rows: {counted}, of {self.num_rows}{leave}."
        )


@dataclass(frozen=True)
class RowCheck:
    """Rows of one file that are still in, while one check after another is made.

    Attributes:
        file: What messages call the file.
        table: [N], as read.
        bad: Where bad rows are noted.
        keep: [N] bool; changed in place.
        first_row: The row of the file, from 0, that the table begins with.
    """

    file: str
    table: pa.Table
    bad: BadRows
    keep: NDArray[np.bool_]
    first_row: int = 0

    def leave_out(
        self,
        reason: str,
        rows: NDArray[np.bool_],
        name: str,
        *,
        hint: str | Callable[[int], str] = "",
    ) -> None:
        """Note bad rows among those still in, and take them out.

        Args:
            reason: Few words.
            rows: [N] bool.
            name: The column that is at fault.
            hint: As of `BadRows.add`.
        """
        self.bad.expect(reason)
        if not rows.any():
            return
        found = rows & self.keep
        self.bad.add(
            reason,
            found,
            file=self.file,
            name=name,
            column=self.table[name],
            hint=hint,
            first_row=self.first_row,
        )
        np.logical_and(self.keep, ~found, out=self.keep)
