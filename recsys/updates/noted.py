"""What the manifest of an updated bundle says of the update."""

from typing import Any

from recsys.bundle import Bundle
from recsys.index import Changes, MeasuredRecall
from recsys.updates.recall import RecallMeter

NO_COUNTS = {"added": 0, "replaced": 0, "restored": 0, "withdrawn": 0}


def noted_changes(
    bundle: Bundle, counts: dict[str, int], changes: Changes, main_count: int
) -> dict[str, Any]:
    """Give `changes`, and `origin`, the id of the bundle that was not updated yet.

    Args:
        bundle: Before the update.
        counts: Of the update.
        changes: Of the new bundle, since its main index was built.
        main_count: Candidates of that index.
    """
    added = changes.num_candidates - main_count
    since = {
        "added": added,
        "replaced": len(changes.rows) - added,
        "withdrawn": len(changes.withdrawn),
    }
    num_live = changes.num_candidates - len(changes.withdrawn)
    origin = bundle.manifest["origin"] if bundle.changes else bundle.bundle_id
    return {"changes": {**counts, "since_index": since, "num_items": num_live}, "origin": origin}


def noted_recall(meter: RecallMeter, recall: MeasuredRecall | None) -> dict[str, Any]:
    """Give `index_recall`: what it is, and what it was when the index was trained."""
    if recall is None or meter.when_trained is None:
        return {"index_recall": None}
    trained = meter.when_trained.to_json()
    return {"index_recall": {**recall.to_json(), "when_trained": trained}}
