"""Signals that let a program end in its own words."""

import _thread
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

_SOON = 0.05  # seconds until a signal whose exit was lost is sent again


@contextlib.contextmanager
def unwinding_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that unwinds, where nobody handles them yet.

    While it unwinds, another of them changes nothing, so that clean-up ends. An exit that gets lost
    in a destructor or a weak reference's callback, whose errors Python drops, is made again.
    """
    numbers = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])
    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    if not taken:
        yield
        return
    with _sending_lost_ones_again():
        for number in taken:
            signal.signal(number, _leave)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, signal.SIG_DFL)


class _SignalExit(SystemExit):
    """The exit that a signal asked for."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    if not _is_unwinding():
        raise _SignalExit(number)


def _is_unwinding() -> bool:
    """Tell whether the code that was interrupted handles the exit, or an error raised in that."""
    error = sys.exception()
    while error is not None and not isinstance(error, _SignalExit):
        error = error.__context__
    return error is not None


@contextlib.contextmanager
def _sending_lost_ones_again() -> Iterator[None]:
    before, ended = sys.unraisablehook, threading.Event()

    def send(number: int) -> None:
        time.sleep(_SOON)  # beyond the place where it was lost
        if not ended.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    def hook(lost: "sys.UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, _SignalExit):
            # Not a Thread: its locks may be held by what the destructor interrupted.
            _thread.start_new_thread(send, (lost.exc_value.number,))
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        ended.set()
        sys.unraisablehook = before
