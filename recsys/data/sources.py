"""The files behind the paths that a user gives: local or on any file system that Arrow opens."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from recsys.foundations import DataError, MissingFileError

_BLOCK_BYTES = 1 << 20
_SECOND = 10**9  # ns


@dataclass(frozen=True)
class SourceFile:
    """One file to read.

    Attributes:
        name: What messages call it: the absolute path, or the URI's scheme and path.
        filesystem: The Arrow file system that holds it.
        path: Its path inside the file system.
        size_bytes: Its size.
        changed_ns: When it was last written, in ns since 1970; None where that is not known.
    """

    name: str
    filesystem: fs.FileSystem
    path: str
    size_bytes: int
    changed_ns: int | None = None

    @classmethod
    def of(cls, prefix: str, filesystem: fs.FileSystem, info: fs.FileInfo) -> "SourceFile":
        """Make one of what a file system says of a file; `prefix` stands before it in messages."""
        return cls(prefix + info.path, filesystem, info.path, info.size, info.mtime_ns)

    @property
    def suffix(self) -> str:
        """Give the suffix in lower case, past that of a compression: `.csv` for `a.CSV.gz`."""
        suffixes = [suffix.lower() for suffix in PurePosixPath(self.path).suffixes]
        while suffixes and suffixes[-1] in (".gz", ".bz2", ".zst", ".lz4"):
            suffixes.pop()
        return suffixes[-1] if suffixes else ""

    def describe(self) -> dict[str, Any]:
        """Give path, size and SHA-256, for the manifest; this reads the file once.

        Raises:
            DataError: It is not the file any more that was found.
        """
        digest = hashlib.sha256()
        try:
            with self.filesystem.open_input_stream(self.path, compression=None) as stream:
                while block := stream.read(_BLOCK_BYTES):
                    digest.update(block)
        except FileNotFoundError as error:
            raise self._changed() from error
        info = self.filesystem.get_file_info(self.path)
        if info.size != self.size_bytes or not _is_same_time(info.mtime_ns, self.changed_ns):
            raise self._changed()
        return {
            "path": self.name,
            "size_bytes": self.size_bytes,
            "sha256": digest.hexdigest(),
        }

    def _changed(self) -> DataError:
        return DataError(f"{self.name} changed while it was read; start again once it is whole.")


def _is_same_time(first: int | None, second: int | None) -> bool:
    """Compare two times in ns, by seconds where one has no more than these.

    Stores of objects tell a listed file's milliseconds, and of one that is asked for the seconds.
    """
    if first is None or second is None or (first % _SECOND and second % _SECOND):
        return first == second
    return first // _SECOND == second // _SECOND


def find_sources(paths: str | Path | Sequence[str | Path]) -> list[SourceFile]:
    """Find the files of a path, or of each path of a list in the order given.

    A folder stands for all files below it, sorted by path; names that begin with `_` or `.` are
    markers and hidden files of other tools and are left out. `~` is the home folder.

    Args:
        paths: A file, a folder, a URI such as `s3://bucket/log/`, or a list of these.

    Raises:
        MissingFileError: A path leads nowhere, or a folder holds no files.
        DataError: A URI cannot be opened, or a file is named twice.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise MissingFileError("No path was given.")
    files = [file for path in listed for file in _expand(str(path))]
    names = [file.name for file in files]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{repeated[0]} is listed twice.")
    return files


def _expand(path: str) -> list[SourceFile]:
    """List the files of one path."""
    filesystem, inside, prefix = _open(path)
    try:
        info = filesystem.get_file_info(inside)
        if info.type == fs.FileType.Directory:
            selector = fs.FileSelector(inside, recursive=True)
            found = [each for each in filesystem.get_file_info(selector) if each.is_file]
        else:
            found = [info] if info.is_file else []
    except OSError as error:
        raise MissingFileError(
            f"{prefix}{inside} cannot be opened: {_first_line(error)}."
        ) from error
    if info.type == fs.FileType.NotFound:
        raise MissingFileError(f"{prefix}{inside} does not exist.")
    if info.type == fs.FileType.Unknown:
        raise MissingFileError(f"{prefix}{inside} is neither a file nor a folder.")
    if info.is_file:
        return [SourceFile.of(prefix, filesystem, info)]
    visible = [each for each in found if not _is_hidden(each.path, inside)]
    if not visible:
        raise MissingFileError(f"The folder {prefix}{inside} holds no files.")
    visible.sort(key=lambda each: each.path)
    return [SourceFile.of(prefix, filesystem, each) for each in visible]


def _open(path: str) -> tuple[fs.FileSystem, str, str]:
    """Give the file system of a path, the path inside it, and what stands before it in messages."""
    scheme, mark, _ = path.partition("://")
    if not mark:
        return fs.LocalFileSystem(), str(Path(path).expanduser().absolute()), ""
    try:
        filesystem, inside = fs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(f"{path} cannot be opened: {_first_line(error)}.") from error
    return filesystem, inside, "" if scheme == "file" else f"{scheme}://"


def _is_hidden(path: str, folder: str) -> bool:
    """Tell whether a part of the path below the folder begins with `_` or `.`."""
    below = PurePosixPath(path).relative_to(PurePosixPath(folder)).parts
    return any(part.startswith(("_", ".")) for part in below)


def _first_line(error: Exception) -> str:
    """Shorten the message of a library to its first line, without its full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
