"""Where the given items stand among those of a bundle.

Dimensions: N given items, C candidates before the update, A added ones.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.foundations import DataError


@dataclass(frozen=True)
class Placement:
    """Rows of the given and of the removed items, and the order of all items after the update.

    Attributes:
        rows: [N], int64, the row of each given item after the update.
        added: [N], bool; those that were no candidates, in rows from C on.
        removed: [w], int64, rising: candidates that are to be withdrawn and are not yet.
        order: All items after the update by their row before it, -1 where there was none: the
            candidates as they were, the added ones, then the items without a vector.
        num_candidates: C + A.
    """

    rows: NDArray[np.int64]
    added: NDArray[np.bool_]
    removed: NDArray[np.int64]
    order: NDArray[np.int64]
    num_candidates: int

    @classmethod
    def of(
        cls,
        bundle: Bundle,
        given: pa.LargeStringArray,
        removed: pa.LargeStringArray,
        *,
        on_unknown: str,
    ) -> Self:
        """Find the rows.

        Args:
            bundle: Before the update.
            given: [N], distinct ids.
            removed: Ids; repeats count once.
            on_unknown: "error" or "skip" ids to remove that are no candidates.

        Raises:
            DataError: An id is given and removed, or to be removed and no candidate.
        """
        vocabulary, before = bundle.items.vocabulary, bundle.num_items
        _refuse_both(given, removed)
        rows = vocabulary.rows(given)
        added = (rows < 0) | (rows >= before)
        tail = np.arange(before, len(vocabulary))
        tail = tail[~np.isin(tail, rows[added])]
        order = np.concatenate([np.arange(before), rows[added], tail])
        places = rows.copy()
        places[added] = before + np.arange(added.sum())
        gone = vocabulary.rows(removed)
        unknown = (gone < 0) | (gone >= before)
        if unknown.any() and on_unknown == "error":
            item = removed[int(np.argmax(unknown))].as_py()
            more = f" (and {unknown.sum() - 1} more)" if unknown.sum() > 1 else ""
            raise DataError(
                f"remove names {item!r}{more}, which the bundle does not recommend; "
                "on_unknown=skip leaves such ids out."
            )
        fresh = np.setdiff1d(gone[~unknown], bundle.withdrawn)
        return cls(places, added, fresh, order, before + int(added.sum()))


def _refuse_both(given: pa.LargeStringArray, removed: pa.LargeStringArray) -> None:
    both = np.isin(removed.to_numpy(zero_copy_only=False), given.to_numpy(zero_copy_only=False))
    if both.any():
        item = removed[int(np.argmax(both))].as_py()
        raise DataError(f"{item!r} stands in items and in remove; it can be in one of them alone.")
