"""Files that are either the old thing or the new thing, whatever happens in between.

Write under a temporary name in the same folder, flush, fsync, rename.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recsys.foundations.errors import ConfigError, FormatError, MissingFileError
from recsys.foundations.temporary_folder import TEMPORARY, temporary_folder


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write; it becomes `path` if the block ends well, else it goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; a file is to be written there.")
    if path.exists() and not path.is_file():  # the rename would replace a device or a pipe
        raise ConfigError(f"{path} is no plain file; it is not replaced by one.")
    temporary = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}-{path.name[-60:]}"
    try:
        yield temporary
        _fsync(temporary)
        temporary.replace(path)
        _fsync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; it replaces `path` if the block ends well, else it goes.

    Where `path` is a symbolic link, what it leads to is replaced.
    """
    path = path.resolve()
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is a file; a folder is to be written there.")
    with temporary_folder(path) as temporary:
        yield temporary
        for file in sorted(temporary.rglob("*")):
            _fsync(file)
        _fsync(temporary)
        _swap_in(temporary, path)
        _fsync(path.parent)


def _swap_in(temporary: Path, path: Path) -> None:
    if not path.exists() and _rename(temporary, path):
        return
    if not _exchange(temporary, path):  # no atomic exchange on this system: two renames
        aside = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}-old"
        path.rename(aside)
        temporary.rename(path)
        shutil.rmtree(aside, ignore_errors=True)


def _rename(folder: Path, path: Path) -> bool:
    """Rename a folder; False if another process has put one there in the meantime."""
    try:
        folder.rename(path)
    except OSError:
        if not path.is_dir():
            raise
        return False
    return True


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step where the system can (Linux); the caller removes `first`."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return (
        rename is not None
        and rename(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0
    )


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, sorted, readable; NaN and infinity are refused."""
    with atomic_file(path) as temporary:
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file of ours.

    Raises:
        MissingFileError: There is no such file.
        FormatError: It is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFileError(f"{path} does not exist.") from error
    except (ValueError, IsADirectoryError, RecursionError) as error:
        raise FormatError(f"{path} is damaged: not a JSON file.") from error


def canonical_json(value: Any) -> str:
    """Give the one text of a JSON value: sorted keys, no blanks; for hashing."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sha256_text(text: str) -> str:
    """Hash a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_file(path: Path) -> str:
    """Hash a file's bytes, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> dict[str, dict[str, Any]]:
    """List every file below a folder: relative path -> size_bytes and sha256, sorted by path."""
    return {
        file.relative_to(folder).as_posix(): {
            "size_bytes": file.stat().st_size,
            "sha256": sha256_file(file),
        }
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def check_files(folder: Path, listed: Any, *, full: bool = True) -> None:
    """Check files against what `list_files` said when they were written.

    Args:
        folder: Where the files lie.
        listed: As `list_files` gave it.
        full: Whether hashes are compared too; sizes always are.

    Raises:
        FormatError: A file is missing, leaves the folder, or has another size or hash.
    """
    if not isinstance(listed, dict):
        raise FormatError(f"the list of files in {folder} is damaged: it lists no files.")
    root = folder.resolve()
    for name, facts in listed.items():
        path = folder / name
        if not path.resolve().is_relative_to(root):
            raise FormatError(f"{path} leaves the folder that should hold it.")
        if not path.is_file():
            raise FormatError(f"{path} is missing.")
        if not isinstance(facts, dict) or not {"size_bytes", "sha256"} <= facts.keys():
            raise FormatError(f"the list of files in {folder} is damaged: {name} has no hash.")
        size = path.stat().st_size
        if size != facts["size_bytes"]:
            raise FormatError(
                f"{path} is damaged: {size} bytes, the manifest says {facts['size_bytes']}."
            )
        if full and sha256_file(path) != facts["sha256"]:
            raise FormatError(f"{path} is damaged: its SHA-256 is not the manifest's.")
