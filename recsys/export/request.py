"""What is asked of an export."""

from dataclasses import dataclass

MOST_FILE_MB = 32


@dataclass(frozen=True)
class ExportRequest:
    """What is written.

    Attributes:
        form: A name of `FORMS`, or "all": every form of the items.
        name: Of the collection or index in the engine.
        columns: Item columns that go along; None: all that the bundle keeps.
        users: Whether the vectors of the stored users are written too.
        file_mb: The largest size of a file that is sent as one request, in MiB; from 1 to 32.
    """

    form: str
    name: str
    columns: tuple[str, ...] | None
    users: bool
    file_mb: int
