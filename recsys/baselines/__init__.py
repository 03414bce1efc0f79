"""Rankings without a trained tower: by popularity, by what users had, by what items are."""

from recsys.baselines.choice import Attempt, Choice, Option, choose
from recsys.baselines.content_knn import ContentKnn
from recsys.baselines.ease import Ease
from recsys.baselines.ials import Ials, ials_is_missing
from recsys.baselines.interactions import (
    Interactions,
    decayed_history_matrix,
    history_matrix,
)
from recsys.baselines.item_knn import ItemKnn
from recsys.baselines.item_vectors import item_vectors
from recsys.baselines.own_items import OwnItems
from recsys.baselines.recent import recent_counts

__all__ = [
    "Attempt",
    "Choice",
    "ContentKnn",
    "Ease",
    "Ials",
    "Interactions",
    "ItemKnn",
    "Option",
    "OwnItems",
    "choose",
    "decayed_history_matrix",
    "history_matrix",
    "ials_is_missing",
    "item_vectors",
    "recent_counts",
]
