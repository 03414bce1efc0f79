"""FAISS indexes whose bytes stay where they lie: in a file, or in the vectors beside them.

Dimensions: C candidates, D embedding width.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

_faiss: Any = faiss  # its type stubs lack some of the names it has


def read_mapped(path: Path) -> Any:
    """Read an index of FAISS whose large parts stay in the file, mapped.

    Processes that read the same file share its pages, and reading takes next to no time. What FAISS
    rearranges in memory (lists of ivf_pq_fast) is copied; so is all where FAISS cannot map (before
    1.11). The file must not change while the index lives; it may be replaced by a rename, or
    deleted. The index cannot be added to.

    FAISS's own ways to map (`IO_FLAG_MMAP`, `IO_FLAG_MMAP_IFC`) are not taken: the first makes
    lookups in lists 1.5 to 2 times as slow, the second crashes on a file that ends within a number.

    Args:
        path: The file.

    Raises:
        RuntimeError: FAISS cannot read it, or it is longer or shorter than what it holds.
    """
    if not hasattr(faiss, "ZeroCopyIOReader"):
        return faiss.read_index(str(path))
    content = np.memmap(path, np.uint8, mode="r")
    reader = _faiss.ZeroCopyIOReader(_faiss.swig_ptr(content), content.size)
    inner = _faiss.read_index(reader)
    if reader.rp_ != content.size:
        raise RuntimeError(f"{reader.rp_} bytes were read, {content.size} are there")
    inner.referenced_objects = [content]
    return inner


def share_vectors(inner: Any, vectors: NDArray[np.float32]) -> bool:
    """Let an index that stores whole vectors in their order read them where they are.

    Args:
        inner: A flat index or a graph over whole vectors; the graph holds C vectors, the flat one
            as many or none. Others are left as they are.
        vectors: [C, D], float32; those that it holds, or shall hold. They are kept alive.

    Returns:
        Whether it now has no vectors of its own; false also where they do not lie in one piece.
    """
    storage = _faiss.downcast_index(inner.storage) if hasattr(inner, "hnsw") else inner
    if not isinstance(storage, faiss.IndexFlat) or not _can_be_viewed(storage, vectors):
        return False
    content = vectors.reshape(-1).view(np.uint8)
    codes, start = _faiss.MaybeOwnedVectorUInt8(), _faiss.swig_ptr(content)
    codes.is_owned = False
    codes.view_data = codes.c_ptr = start
    codes.view_size = codes.c_size = content.size
    storage.codes = codes
    storage.ntotal = len(vectors)
    inner.referenced_objects = [*getattr(inner, "referenced_objects", ()), content]
    return True


def _can_be_viewed(storage: Any, vectors: NDArray[np.float32]) -> bool:
    return (
        isinstance(vectors, np.ndarray)
        and vectors.dtype == np.float32
        and vectors.flags.c_contiguous
        and vectors.flags.aligned
        and len(vectors) > 0
        and hasattr(storage.codes, "is_owned")
    )
