"""How a table is written down: CSV, TSV or Parquet, and the details of the text forms."""

from dataclasses import dataclass

from recsys.data.sources import SourceFile
from recsys.foundations import ArgumentError, DataError, check_choice


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """The form of the files of one table.

    Attributes:
        format: `csv`, `tsv`, `parquet`, or `auto`: by the suffix of each file's name.
        separator: One character between the fields, a tab also as a backslash and a t, which is
            what a shell gives; None: a comma, for `tsv` a tab.
        header: Whether the first line names the columns.
        names: The columns' names where there is no header; none given: f0, f1, ...
        encoding: The text encoding; a byte order mark at the start of a file wins over it.
    """

    format: str = "auto"
    separator: str | None = None
    header: bool = True
    names: tuple[str, ...] = ()
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        check_choice("format", self.format, ("auto", "csv", "tsv", "parquet"))
        if self.separator == r"\t":
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and (
            len(self.separator) != 1 or not self.separator.isascii() or self.separator in '\r\n"'
        ):
            raise ArgumentError(f"`separator` must be one character, got {self.separator!r}.")
        if self.header and self.names:
            raise ArgumentError("`names` must be empty unless `header` is false: the header names.")
        if len(set(self.names)) < len(self.names):
            raise ArgumentError(f"`names` must differ, got {list(self.names)}.")

    def kind_of(self, file: SourceFile) -> str:
        """Give "csv", "tsv" or "parquet" for one file.

        Raises:
            DataError: `format` is `auto` and the file's name does not tell.
        """
        if self.format != "auto":
            return self.format
        by_suffix = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet"}
        by_suffix |= {".pq": "parquet", ".parq": "parquet"}
        kind = by_suffix.get(file.suffix)
        if kind is None and self.separator is not None:
            kind = "csv"
        if kind is None:
            raise DataError(
                f"{file.name}: the suffix does not tell the format; set "
                "dataset.file.format (of a lookup: file.format) to csv, tsv or parquet, or "
                "dataset.file.separator."
            )
        return kind

    def separator_of(self, file: SourceFile) -> str:
        """Give the character between the fields of a text file."""
        if self.separator is not None:
            return self.separator
        return "\t" if self.kind_of(file) == "tsv" else ","
