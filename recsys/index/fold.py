"""Changes folded into a new main index.

Dimensions: N candidates of the main index, C with the added ones, n changed rows, D embedding
width.
"""

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import check_shape
from recsys.index.build_inner import add_vectors, build_inner
from recsys.index.changed_index import ChangedIndex
from recsys.index.changes import Changes
from recsys.index.faiss_index import FaissIndex
from recsys.index.main_index import MainIndex, build_main
from recsys.index.mapped import share_vectors
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings

_faiss: Any = faiss  # its type stubs lack some of the names it has


def fold(
    index: ChangedIndex, *, retrain: bool, vectors: NDArray[np.float32] | None = None
) -> MainIndex:
    """Build an index over all C vectors, changes in place, with the settings of the main index.

    With lists, keeping what was trained (centroids, their number, the codes) means that only the
    changed vectors are put into their lists: that costs n vectors, and for a while the memory of
    two copies of FAISS's index. A graph to which rows were only added grows by them; one in which
    vectors were replaced is built anew, since its edges cannot be taken back. A flat index has
    nothing to train, and one of ScaNN is always built anew.

    Args:
        index: The index with its changes; is left as it is.
        retrain: Whether what the vectors train is trained anew; what follows from C, such as the
            number of lists, is then decided anew too.
        vectors: [C, D], what ``index.vectors`` gives, where it was written already, so that it can
            be mapped; None: it is made in memory.

    Returns:
        The index. Withdrawn rows are in it like all others: `withdrawal_alone` gives the changes
        that must be kept beside it.

    Raises:
        ShapeError: The vectors are not [C, D].
    """
    if vectors is None:
        vectors = np.asarray(index.vectors)
    check_shape("vectors", vectors, index.num_candidates, index.dim)
    if retrain or not isinstance(index.main, FaissIndex):
        return build_main(vectors, index.settings)
    return FaissIndex(vectors, _with_changes(index, index.main, vectors), index.settings)


def withdrawal_alone(changes: Changes) -> Changes:
    """Give what is left of changes once the main index holds their vectors."""
    nothing = Changes.none(changes.num_candidates, changes.vectors.shape[1])
    return Changes(nothing.rows, nothing.vectors, changes.withdrawn, changes.num_candidates)


def _with_changes(index: ChangedIndex, main: FaissIndex, vectors: NDArray[np.float32]) -> Any:
    """Give FAISS's index over the vectors [C, D], with what the main one was trained to."""
    rows, kind, settings = index.changes.rows, index.kind, index.settings
    replaces = len(rows) > 0 and rows[0] < index.main.num_candidates
    if kind == "flat":
        return build_inner(vectors, IndexSettings(kind="flat"))
    if kind in GRAPH_KINDS and replaces:
        return build_inner(vectors, settings)
    # Not `clone_index`: of an index that is mapped it would give one that cannot be changed.
    inner = faiss.deserialize_index(faiss.serialize_index(main.inner))
    changed = np.ascontiguousarray(index.changes.vectors)
    if kind in LIST_KINDS:
        if replaces:
            inner.remove_ids(_faiss.IDSelectorBatch(rows))
        inner.add_with_ids(changed, rows)
        return inner
    add_vectors(inner, changed, one_thread=settings.reproducible)
    share_vectors(inner, vectors)
    return inner
