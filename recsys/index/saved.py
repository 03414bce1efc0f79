"""The saved forms: `index.faiss` as FAISS writes it, vectors as `.npy`; both are mapped."""

import contextlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import FormatError, MissingFileError, atomic_file, map_npy
from recsys.index.faiss_index import FaissIndex
from recsys.index.mapped import read_mapped, share_vectors
from recsys.index.settings import IndexSettings

_faiss: Any = faiss  # its type stubs lack some of the names it has
_UNBOUNDED = (b"IwPQ", b"IwPf")  # FAISS counts a table that it never builds under this metric
_TYPES = (b"IxFI", b"IHNf", b"IHNs", b"IwFl", b"IwSq", *_UNBOUNDED)
_HEADER = struct.Struct("<4s i q q q ? i")  # type, width, count, two unused, trained, metric
_LENGTH = struct.Struct("<q")  # of a flat index's vectors, in numbers; follows the header


def write_index(path: Path, index: FaissIndex) -> None:
    """Write the FAISS part of an index, atomically; the vectors are written beside it."""
    with atomic_file(path) as temporary:
        try:
            with temporary.open("wb") as file:
                _write_into(file, index.inner)
        except OSError as error:
            reason = error.strerror or error
            raise OSError(error.errno, f"{path} cannot be written ({reason})") from error


def _write_into(file: BinaryIO, inner: Any) -> None:
    """Let FAISS write into a file of Python: its own says nothing of what is lost at closing.

    Raises:
        OSError: The disk is full, for one.
    """
    failed: list[OSError] = []

    def write(block: bytes) -> int:
        try:
            if not failed:
                file.write(block)
        except OSError as error:
            failed.append(error)  # an exception would be lost on the way through C++
        return len(block)

    faiss.write_index(inner, _faiss.PyCallbackIOWriter(write))
    if failed:
        raise failed[0]


def read_index(path: Path, vectors: NDArray[np.float32], settings: IndexSettings) -> FaissIndex:
    """Read an index that `write_index` wrote; its pages are shared with others that read it.

    The file is mapped, not copied (`read_mapped` says what is), and must not change while the index
    lives; a rename may replace it. A flat index, and a graph over whole vectors, read these in
    `vectors`, so that they are in memory once.

    Args:
        path: The file.
        vectors: [C, D], those it was built from, in the same order.
        settings: Those it was built with.

    Raises:
        MissingFileError: There is no such file.
        FormatError: It is damaged, or holds another count, width or metric than the vectors.
    """
    kind = _check_header(path, vectors)
    limit = None if kind in _UNBOUNDED else path.stat().st_size
    try:
        with _bounded_allocations(limit):
            inner = read_mapped(path)
        if getattr(inner, "nprobe", 1) < 1:
            raise RuntimeError("a search would read no list")
        share_vectors(inner, vectors)
        return FaissIndex(vectors, inner, settings)
    except (RuntimeError, MemoryError, ValueError) as error:
        raise FormatError(f"{path} is damaged: not an index that this version reads.") from error


def _check_header(path: Path, vectors: NDArray[np.float32]) -> bytes:
    """Check the first bytes before FAISS believes them; give the type of the index."""
    if not path.is_file():
        raise MissingFileError(f"{path} does not exist.")
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        raise FormatError(f"{path} is damaged: it ends within its first {_HEADER.size} bytes.")
    kind, dim, count, _, _, trained, metric = _HEADER.unpack(head)
    if kind not in _TYPES:
        raise FormatError(f"{path} is damaged: it begins with {kind!r}, no index written here.")
    if metric != faiss.METRIC_INNER_PRODUCT:
        raise FormatError(f"{path} ranks by another metric than the inner product ({metric}).")
    if (count, dim) != vectors.shape or not trained:
        raise FormatError(
            f"{path} holds {count} vectors of width {dim}, the item vectors are "
            f"{vectors.shape[0]} of width {vectors.shape[1]}: they do not belong together."
        )
    if kind == b"IxFI":
        _check_flat(path, vectors)
    return bytes(kind)


def _check_flat(path: Path, vectors: NDArray[np.float32]) -> None:
    """Check the length of a flat index, whose vectors are never read."""
    with path.open("rb") as file:
        file.seek(_HEADER.size)
        length = file.read(_LENGTH.size)
    whole = _HEADER.size + _LENGTH.size + 4 * vectors.size
    if length != _LENGTH.pack(vectors.size) or path.stat().st_size != whole:
        raise FormatError(f"{path} is damaged: it must hold {vectors.size} numbers, and no more.")


@contextlib.contextmanager
def _bounded_allocations(num_bytes: int | None) -> Iterator[None]:
    """Keep a damaged length from asking for more memory than the file could fill."""
    if num_bytes is None or not hasattr(
        faiss, "set_deserialization_vector_byte_limit"
    ):  # an older FAISS
        yield
        return
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(num_bytes)
    try:
        yield
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def write_vectors(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write vectors [C, D] as float32 `.npy`, atomically."""
    write_vector_blocks(path, vectors.shape, [vectors])


def write_vector_blocks(
    path: Path, shape: tuple[int, ...], blocks: Iterable[NDArray[np.float32]]
) -> None:
    """Write what `write_vectors` does, a block at a time, so that a block alone is in memory.

    Args:
        path: The file.
        shape: (C, D).
        blocks: Consecutive vectors, C altogether.
    """
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").data)


def read_vectors(path: Path) -> NDArray[np.float32]:
    """Map vectors that `write_vectors` wrote: [C, D], float32, read from disk as they are used.

    Raises:
        MissingFileError: There is no such file.
        FormatError: It is damaged, or not float32 of two dimensions.
    """
    if not path.is_file():
        raise MissingFileError(f"{path} does not exist.")
    vectors = map_npy(path)
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        raise FormatError(f"{path} is damaged: it holds no float32 vectors.")
    return vectors
