"""What an update and a compaction say on the way."""

import logging

from recsys.index import MeasuredRecall
from recsys.updates.compact import Compacted
from recsys.updates.update import Updated

log = logging.getLogger(__name__)


def log_update(updated: Updated) -> None:
    """Say what was changed, what the index finds now, and whether to compact."""
    counts = ", ".join(f"{count} {name}" for name, count in updated.counts.items())
    log.info("items: %s", counts)
    _log_recall(updated.recall)
    if updated.advice is not None:
        log.warning("%s: recsys compact bundle=%s is advised.", updated.advice, updated.path)


def log_compaction(compacted: Compacted) -> None:
    """Say what the index finds now, and whether it was trained anew."""
    if compacted.retrained and compacted.kept is not None:
        log.info(
            "the index was trained anew: with its old centroids index recall was %.4f",
            compacted.kept.mean,
        )
    _log_recall(compacted.recall)


def _log_recall(recall: MeasuredRecall | None) -> None:
    if recall is not None:
        log.info(
            "index recall@%d of %d users: %.4f [%.4f, %.4f]",
            recall.k,
            recall.num_queries,
            recall.mean,
            recall.low,
            recall.high,
        )
