"""Folders for a while beside what is being written; those of killed processes go with the next."""

import contextlib
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

TEMPORARY = ".tmp-"
_LONGEST = 60  # characters of a name that are kept: the whole must fit the file system


@contextlib.contextmanager
def temporary_folder(beside: Path, suffix: str = "") -> Iterator[Path]:
    """Yield a new folder beside a path; it goes when the block ends, unless it was renamed.

    The process holds a lock on it. So folders for the same path that nobody holds are known to be
    left by a process that was killed; they are removed first.

    Args:
        beside: What the folder is for; its parent is made.
        suffix: Tells folders of several uses for one path apart.
    """
    beside.parent.mkdir(parents=True, exist_ok=True)
    name = beside.name[-_LONGEST:] + suffix
    _remove_abandoned(beside.parent, name)
    path, lock = _make(beside.parent, name)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _make(parent: Path, name: str) -> tuple[Path, int | None]:
    """Make a folder and take its lock; None where the file system has no locks."""
    while True:
        path = parent / f"{TEMPORARY}{uuid.uuid4().hex}-{name}"
        path.mkdir()
        lock = _lock(path, wait=True)
        if path.exists():  # else another process took it for abandoned before it was held
            return path, lock
        if lock is not None:
            os.close(lock)


def _remove_abandoned(parent: Path, name: str) -> None:
    pattern = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{32}-" + re.escape(name))
    for path in parent.iterdir():
        if pattern.fullmatch(path.name):
            lock = _lock(path, wait=False)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _lock(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder until the descriptor is closed or the process ends; None: it cannot be had.

    Args:
        folder: The folder.
        wait: Whether to wait until nobody else holds it.
    """
    if sys.platform == "win32":  # there, what a killed process leaves stays
        return None
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # someone holds it, or the file system has no locks
        os.close(descriptor)
        return None
    return descriptor
