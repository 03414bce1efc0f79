"""Signals that let a program end in its own words."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


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
