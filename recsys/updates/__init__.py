"""Items of a bundle added, replaced and withdrawn; the changes folded into the index."""

from recsys.updates.compact import Compacted, compact_bundle
from recsys.updates.messages import log_compaction, log_update
from recsys.updates.recall import RecallSettings
from recsys.updates.update import Updated, update_bundle

__all__ = [
    "Compacted",
    "RecallSettings",
    "Updated",
    "compact_bundle",
    "log_compaction",
    "log_update",
    "update_bundle",
]
