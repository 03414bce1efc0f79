"""From an error to what the terminal shows and the status that the shell gets."""

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable

from recsys.cli.interruptions import interruptions_first

# What the machine lacks or forbids; another OSError is more likely a fault of ours.
_MENDABLE = {
    errno.ENOSPC,
    errno.EFBIG,
    errno.EDQUOT,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENOENT,
    errno.EMFILE,
    errno.EIO,
    errno.EADDRINUSE,
    errno.EADDRNOTAVAIL,
}


def guarded(run: Callable[[], int]) -> int:
    """Run, and turn whatever goes wrong into a report and a status.

    Returns:
        What `run` returned; 2 or 1 after an error, 130 after Ctrl-C, 141 where nobody reads the
        output any more.
    """
    try:
        with interruptions_first():
            return run()
    except KeyboardInterrupt:
        sys.stderr.write("recsys: interrupted\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # noqa: BLE001  (the outermost place)
        return report(error)


def report(error: Exception, where: str = "") -> int:
    """Tell the user of an error: one line for what they can mend, else the traceback.

    Args:
        error: What was raised.
        where: Stands in front of the sentence, such as the name of a job.

    Returns:
        The exit status, 2 or 1.
    """
    sentence = _sentence(error)
    if sentence is None or wants_traceback():
        traceback.print_exception(error)
    if sentence is None:
        if where:
            complain(f"{where}{type(error).__name__}: {error}")
        return 1
    complain(where + sentence)
    return 2


def complain(sentence: str) -> None:
    """Write one line on stderr, whatever line breaks the sentence holds."""
    line = " ".join(part.strip() for part in sentence.splitlines() if part.strip())
    sys.stderr.write(f"recsys: error: {line}\n")
    sys.stderr.flush()


def wants_traceback() -> bool:
    """Tell whether the user asked for tracebacks by a variable of the environment."""
    return "1" in (os.environ.get("RECSYS_TRACEBACK"), os.environ.get("HYDRA_FULL_ERROR"))


def _sentence(error: Exception) -> str | None:
    """Say an error in one sentence, or None where it is nothing the user can mend."""
    from recsys.config.composition import explain
    from recsys.foundations import RecsysError

    if isinstance(error, RecsysError):
        return str(error)
    composed = explain(error)
    if composed is not None:
        return composed
    if _is_memory(error):
        return f"out of memory; ask for smaller batches or blocks. {error}".strip()
    if isinstance(error, OSError) and error.errno in _MENDABLE:
        told = error.filename or (error.strerror if "/" in str(error.strerror) else "")
        name = f": {told}".rstrip(".") if told else ""
        return f"{os.strerror(error.errno)}{name}."
    number = _system_error(error)
    return f"{os.strerror(number)}." if number in _MENDABLE else None


def _system_error(error: Exception) -> int | None:
    """Give the number of the system's error in the text of one from Rust (safetensors)."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    is_rust = type(error).__name__ == "SafetensorError"
    return int(found.group(1)) if is_rust and found else None


def _is_memory(error: Exception) -> bool:
    """Tell whether memory ran out: NumPy, Arrow and Python say so by type, or else by words."""
    words = (
        "can't allocate memory",
        "out of memory",
        "storage size calculation overflowed",  # torch: more bytes than 64 bits count
        "array is too big",  # NumPy, likewise
    )
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | ValueError) and any(w in str(error).lower() for w in words)
    )
