"""How a run ends: which status fits, and signals that let it end at all."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


def status_of(error: BaseException | None) -> str:
    """Give MLflow's word for the way a block was left."""
    code = error.code if isinstance(error, SystemExit) else None
    if error is None or (isinstance(error, SystemExit) and code in (None, 0)):
        return "FINISHED"
    by_signal = isinstance(code, int) and code > 128
    return "KILLED" if by_signal or isinstance(error, KeyboardInterrupt) else "FAILED"


@contextlib.contextmanager
def unwinding_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that unwinds, where nobody handles them yet."""
    numbers = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])
    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    signal.signal(number, signal.SIG_IGN)  # a second one must not cut the ending short
    raise SystemExit(128 + number)
