"""Ctrl-C and the exit of a signal, where another error hides them.

OmegaConf's `finally` blocks, and Python itself where it makes a class, raise another error over one
that comes at the wrong moment.
"""

import contextlib
import functools
import traceback
from collections.abc import Iterator
from typing import Any

_SIGNALS = 128  # the status after signal n is this + n


@contextlib.contextmanager
def interruptions_first() -> Iterator[None]:
    """Raise what interrupted the block in place of an error that came of it."""
    try:
        yield
    except Exception as error:
        hidden = _interruption(error)
        if hidden is None:
            raise
        from recsys.cli.report import wants_traceback

        if wants_traceback():
            traceback.print_exception(error)
        raise hidden from None


@contextlib.contextmanager
def interruptible_composition() -> Iterator[None]:
    """Let no error hide an interruption from Hydra, which passes over some while it composes."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    own = ConfigLoaderImpl.load_configuration

    @functools.wraps(own)
    def load_configuration(*args: Any, **kwargs: Any) -> Any:
        with interruptions_first():
            return own(*args, **kwargs)

    ConfigLoaderImpl.load_configuration = load_configuration  # type: ignore[method-assign]
    try:
        yield
    finally:
        ConfigLoaderImpl.load_configuration = own  # type: ignore[method-assign]


def _interruption(error: BaseException) -> BaseException | None:
    """Find Ctrl-C or a signal's exit among the errors that this one came of."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        seen.add(id(one))
        code = one.code if isinstance(one, SystemExit) else None
        if isinstance(one, KeyboardInterrupt) or (isinstance(code, int) and code > _SIGNALS):
            return one
        others = (one.__cause__, one.__context__)
        waiting += [other for other in others if other is not None and id(other) not in seen]
    return None
