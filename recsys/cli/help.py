"""The help of a stage, without the schemas that Hydra lists among the choices."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def help_without_schemas(arguments: Sequence[str]) -> Iterator[None]:
    """Leave the names of schemas out of what is printed, if help is asked for."""
    if not {"--help", "-h"} & set(arguments):
        yield
        return
    buffer = io.StringIO()
    try:
        with contextlib.redirect_stdout(buffer):
            yield
    finally:
        sys.stdout.write("".join(map(_without, buffer.getvalue().splitlines(keepends=True))))


def _without(line: str) -> str:
    group = re.fullmatch(r"([\w/]+): (.*)(\n?)", line)
    if not group or "_schema" not in line:
        return line
    choices = [name for name in group[2].split(", ") if not name.endswith("_schema")]
    return f"{group[1]}: {', '.join(choices)}{group[3]}"
