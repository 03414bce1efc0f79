"""A new version of a bundle whose index has taken its changes in."""

from dataclasses import dataclass
from pathlib import Path

from recsys.bundle import Bundle, NewParts, inherited_provenance, only_withdrawn, write_version
from recsys.foundations import DataError, temporary_folder
from recsys.index import (
    ChangedIndex,
    FaissIndex,
    MainIndex,
    MeasuredRecall,
    StoredIndex,
    fold,
    read_vectors,
    withdrawal_alone,
    write_vector_blocks,
)
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
    with temporary_folder(path, suffix="-vectors") as folder:
        file = folder / "item_vectors.npy"
        write_vector_blocks(file, changed.vectors.shape, changed.vectors.blocks())
        return _compact(bundle, path, changed, file, recall)


def _compact(
    bundle: Bundle, path: Path, changed: ChangedIndex, file: Path, recall: RecallSettings
) -> Compacted:
    """Fold over vectors that are written already, so that they are read from disk as they are used.

    Args:
        bundle: As for `compact_bundle`.
        path: Likewise.
        changed: The bundle's index.
        file: All vectors of it.
        recall: As for `compact_bundle`.
    """
    vectors, meter = read_vectors(file), RecallMeter.of(bundle, recall)
    index = fold(changed, retrain=False, vectors=vectors)
    measured, kept, retrained = meter.measure(_hiding(bundle, index)), None, False
    if measured is not None and meter.has_drifted(measured):
        if isinstance(changed.main, FaissIndex):  # one of ScaNN is always trained anew
            anew = fold(changed, retrain=True, vectors=vectors)
            found = meter.measure(_hiding(bundle, anew))
            if found is not None and found.mean > measured.mean:
                index, kept, measured, retrained = anew, measured, found, True
        meter = RecallMeter(recall, meter.queries, measured)
    left = withdrawal_alone(changed.changes)
    about = noted_changes(bundle, NO_COUNTS, left, index.num_candidates)
    about |= noted_recall(meter, measured) | {"compaction": None}
    write_version(
        bundle,
        path,
        NewParts(index=index, vectors=file, changes=only_withdrawn(bundle)),
        scores={},
        provenance=inherited_provenance(bundle),
        about=about,
    )
    return Compacted(path, retrained, measured, kept)


def _hiding(bundle: Bundle, index: MainIndex) -> StoredIndex:
    """Give an index that never gives what is withdrawn."""
    changes = only_withdrawn(bundle)
    return index if changes is None else ChangedIndex(index, changes)
