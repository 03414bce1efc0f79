"""Rows of a text file that have not as many fields as the header names."""

from dataclasses import dataclass
from typing import Any

from recsys.data.bad_rows import BadRows

WRONG_FIELDS = "wrong number of fields"


@dataclass
class MalformedRows:
    """Rows whose number of fields is not the header's; Arrow leaves them out.

    Attributes:
        header_rows: Rows before the first row of data, 0 or 1.
        count: How many there are.
        first: The first one's row number in the file and a description; None without any.
    """

    header_rows: int = 0
    count: int = 0
    first: tuple[int, str] | None = None

    def __call__(self, row: Any) -> str:
        """Note one row, as Arrow's handler."""
        self.count += 1
        if self.first is None:
            number = row.number - self.header_rows if row.number is not None else 0
            self.first = (number, f"{row.actual_columns} fields instead of {row.expected_columns}")
        return "skip"

    def note(self, bad: BadRows, file: str) -> None:
        """Add the rows to the bad ones.

        Args:
            bad: Where they are noted.
            file: The file.
        """
        if self.first is not None:
            row, found = self.first
            bad.counts[WRONG_FIELDS] = bad.counts.get(WRONG_FIELDS, 0) + self.count
            bad.first.setdefault(WRONG_FIELDS, f"{file}, row {row} has {found}")
            bad.num_rows += self.count
