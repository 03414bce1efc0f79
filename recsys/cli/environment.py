"""Environment variables that libraries read once, as they are loaded."""

import contextlib
import os
from collections.abc import Iterator


def set_thread_environment() -> None:
    """Have OpenMP's idle threads sleep and not spin; call it before torch is loaded.

    Spinning threads of torch and FAISS take the cores from each other. What the user set stays.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")


@contextlib.contextmanager
def variable(name: str, value: str | None) -> Iterator[None]:
    """Hold a variable at a value (None: unset) for the length of a block."""
    before = os.environ.get(name)
    _put(name, value)
    try:
        yield
    finally:
        _put(name, before)


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
