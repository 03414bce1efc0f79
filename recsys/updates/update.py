"""A new version of a bundle with other items.

Dimensions: N given items, E output width.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle, NewParts, inherited_provenance, write_version
from recsys.data import Entities
from recsys.foundations import DataError, check_choice
from recsys.index import ChangedIndex, Changes, MeasuredRecall
from recsys.serving import Ids, as_ids, embed_items
from recsys.updates.given_items import GivenItems
from recsys.updates.merged_items import merge_items
from recsys.updates.noted import noted_changes, noted_recall
from recsys.updates.placement import Placement
from recsys.updates.recall import RecallMeter, RecallSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Updated:
    """What became of a bundle.

    Attributes:
        path: The new version.
        counts: `added`, `replaced`, `restored` (of the replaced, those that were withdrawn) and
            `withdrawn` items.
        recall: Index recall; None where the model knows nobody to ask.
        advice: Why the changes should be folded in; None: they need not.
    """

    path: Path
    counts: dict[str, int]
    recall: MeasuredRecall | None
    advice: str | None


def update_bundle(
    bundle: Bundle,
    path: Path,
    *,
    items: pa.Table | None = None,
    remove: Ids = (),
    on_unknown: str = "error",
    list_separator: str = "|",
    recall: RecallSettings,
    max_share: float,
) -> Updated:
    """Add, replace and withdraw items, and write a new version of the bundle.

    Items that the bundle recommends get the given columns, and the vector that the item tower makes
    of them; others are added as cold items, which the tower knows by their features alone. A given
    vector stands in place of the tower's. Files that stay the same are shared on disk.

    Args:
        bundle: As read; stays as it is.
        path: The new folder.
        items: `id` (text, distinct), feature and display columns, and perhaps `vector`.
        remove: Ids to withdraw.
        on_unknown: "error" or "skip" ids to remove that the bundle does not recommend.
        list_separator: What stands between the values of a text where the bundle has lists.
        recall: How index recall is measured.
        max_share: Of candidates with a vector beside the index, above which folding is advised.

    Raises:
        DataError: Nothing would change, a column is missing or holds what it should not, or ids
            contradict each other; the message names the first.
    """
    check_choice("on_unknown", on_unknown, ("error", "skip"))
    given = GivenItems.none(bundle)
    if items is not None:
        given = GivenItems.of(bundle, items, list_separator=list_separator)
    _warn_of_others(given)
    placement = Placement.of(bundle, given.ids, as_ids(remove), on_unknown=on_unknown)
    if not len(given) and not len(placement.removed):
        raise DataError(
            "There is nothing to change: items and remove name no item, or only items that are "
            "withdrawn already."
        )
    merged = merge_items(bundle, given, placement) if len(given) else None
    changes = _changes(bundle, placement, _vectors(bundle, given, placement, merged))
    index = ChangedIndex(bundle.main_index, changes)
    meter = RecallMeter.of(bundle, recall, None if merged is None else merged.features)
    measured = meter.measure(index)
    counts = _counts(bundle, placement)
    advice = _advice(changes, meter, measured, max_share)
    about = noted_changes(bundle, counts, changes, bundle.main_index.num_candidates)
    about |= noted_recall(meter, measured) | {"compaction": advice}
    write_version(
        bundle,
        path,
        NewParts(changes=changes, items=merged),
        scores={},
        provenance=inherited_provenance(bundle),
        about=about,
    )
    return Updated(path, counts, measured, advice)


def _warn_of_others(given: GivenItems) -> None:
    if given.others:
        log.warning("columns of items that the bundle does not keep: %s", ", ".join(given.others))


def _vectors(
    bundle: Bundle, given: GivenItems, placement: Placement, merged: Entities | None
) -> NDArray[np.float32]:
    """Give the vectors of the given items: [N, E]."""
    vectors = given.vectors.copy()
    asked = np.flatnonzero(~given.has_vector)
    if merged is None or not len(asked):
        return vectors
    rows = placement.rows[asked]
    known = np.where(rows < bundle.num_model_items, rows, -1)
    vectors[asked] = embed_items(bundle.model, known, merged.features.take(rows))
    return vectors


def _changes(bundle: Bundle, placement: Placement, vectors: NDArray[np.float32]) -> Changes:
    """Put the new changes over those that the bundle has."""
    old = bundle.index_changes
    stays = ~np.isin(old.rows, placement.rows)
    rows = np.concatenate([old.rows[stays], placement.rows])
    order = np.argsort(rows)
    both = np.concatenate([np.asarray(old.vectors)[stays], vectors])
    withdrawn = np.setdiff1d(old.withdrawn, placement.rows)
    withdrawn = np.union1d(withdrawn, placement.removed).astype(np.int64)
    return Changes(rows[order], both[order], withdrawn, placement.num_candidates)


def _counts(bundle: Bundle, placement: Placement) -> dict[str, int]:
    replaced = placement.rows[~placement.added]
    return {
        "added": int(placement.added.sum()),
        "replaced": len(replaced),
        "restored": int(np.isin(replaced, bundle.withdrawn).sum()),
        "withdrawn": len(placement.removed),
    }


def _advice(
    changes: Changes, meter: RecallMeter, recall: MeasuredRecall | None, max_share: float
) -> str | None:
    """Say why the changes should be folded into the index; None: they need not."""
    share = len(changes.rows) / max(changes.num_candidates, 1)
    if share > max_share:
        return f"{share:.1%} of the items have a vector beside the index, more than {max_share:.1%}"
    if recall is not None and meter.when_trained is not None and meter.has_drifted(recall):
        before = meter.when_trained.mean
        return f"index recall fell from {before:.4f} to {recall.mean:.4f}"
    return None
