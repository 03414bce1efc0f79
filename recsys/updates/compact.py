"""A new version of a bundle whose index has taken its changes in."""

from dataclasses import dataclass, replace
from pathlib import Path

from recsys.bundle import Bundle, NewParts, inherited_provenance, only_withdrawn, write_version
from recsys.foundations import DataError
from recsys.index import ChangedIndex, Changes, FaissIndex, MeasuredRecall, StoredIndex, fold
from recsys.updates.noted import NO_COUNTS, noted_changes, noted_recall
from recsys.updates.recall import RecallMeter, RecallSettings


@dataclass(frozen=True)
class Compacted:
    """What became of a bundle.

    Attributes:
        path: The new version.
        retrained: Whether what the vectors train was trained anew.
        recall: Index recall; None where the model knows nobody to ask.
        kept: What it would have been with the centroids kept; None unless they were not.
    """

    path: Path
    retrained: bool
    recall: MeasuredRecall | None
    kept: MeasuredRecall | None


def compact_bundle(bundle: Bundle, path: Path, *, recall: RecallSettings) -> Compacted:
    """Fold the changes of a bundle into a new index over all of its vectors.

    What the vectors train (centroids, codes) stays, unless index recall is then more than
    `recall.drift` below what it was when they were trained. Withdrawn items stay withdrawn.

    Args:
        bundle: As read; stays as it is.
        path: The new folder.
        recall: How index recall is measured, and how far it may fall.

    Raises:
        DataError: There is nothing to fold in.
    """
    changed = bundle.index
    if not isinstance(changed, ChangedIndex) or not len(changed.changes.rows):
        raise DataError(
            f"There is nothing to fold in: every item of {bundle.path} has the vector that its "
            "index was built with."
        )
    meter = RecallMeter.of(bundle, recall)
    index = fold(changed, retrain=False)
    measured, kept, retrained = meter.measure(_hiding(bundle, index)), None, False
    if meter.has_drifted(measured):
        kept, retrained = measured, True
        index = fold(changed, retrain=True)
        measured = meter.measure(_hiding(bundle, index))
        meter = RecallMeter(recall, meter.queries, measured)
    changes = Changes.none(index.num_candidates, index.dim)
    changes = replace(changes, withdrawn=bundle.withdrawn)
    about = noted_changes(bundle, NO_COUNTS, changes, index.num_candidates)
    about |= noted_recall(meter, measured) | {"compaction": None}
    write_version(
        bundle,
        path,
        NewParts(index=index, changes=only_withdrawn(bundle)),
        scores={},
        provenance=inherited_provenance(bundle),
        about=about,
    )
    return Compacted(path, retrained, measured, kept)


def _hiding(bundle: Bundle, index: FaissIndex) -> StoredIndex:
    """Give an index that never gives what is withdrawn."""
    changes = only_withdrawn(bundle)
    return index if changes is None else ChangedIndex(index, changes)
