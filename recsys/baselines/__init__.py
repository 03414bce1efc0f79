"""Rankings without a trained tower: recent popularity, neighbours of items, EASE."""

from recsys.baselines.choice import Attempt, Choice, Option, choose
from recsys.baselines.ease import Ease
from recsys.baselines.interactions import Interactions, history_matrix
from recsys.baselines.item_knn import ItemKnn
from recsys.baselines.recent import recent_counts

__all__ = [
    "Attempt",
    "Choice",
    "Ease",
    "Interactions",
    "ItemKnn",
    "Option",
    "choose",
    "history_matrix",
    "recent_counts",
]
