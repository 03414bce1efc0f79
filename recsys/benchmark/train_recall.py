"""How well a training ranks for users that were held out."""

from functools import partial

from recsys.data import PreparedDataset
from recsys.evaluation import build_queries, embed_queries, quick_metrics
from recsys.foundations import Ragged
from recsys.index import ExactIndex
from recsys.metrics import num_relevant_of, recall_at_k, relevance_of
from recsys.models import TwoTower, encode_candidates


class RecallJudge:
    """Mean recall over the users of the test part, whose seen items are left out.

    Args:
        dataset: With a test part.
        k: Length of the lists.
    """

    def __init__(self, dataset: PreparedDataset, k: int) -> None:
        self.k, self._dataset, self._queries = k, dataset, build_queries(dataset, "test")

    @property
    def num_users(self) -> int:
        """Count the users."""
        return len(self._queries)

    @property
    def seen(self) -> Ragged:
        """Give what each user had before, each item once."""
        return self._queries.seen

    def of_lists(self, lists: Ragged) -> float:
        """Judge ranked lists, one a user."""
        truth = self._queries.truth
        hits = relevance_of(lists, truth)
        return float(recall_at_k(hits, num_relevant_of(truth), self.k).mean())

    def of_model(self, model: TwoTower) -> float:
        """Judge what a model gives over the whole catalogue; leaves it in the mode it was in."""
        dataset = self._dataset
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        metrics = quick_metrics(
            self._queries,
            embed=partial(embed_queries, model),
            exact=ExactIndex(vectors),
            ks=[self.k],
            exclude_seen=True,
        )
        return metrics[f"recall_at_{self.k}"]
