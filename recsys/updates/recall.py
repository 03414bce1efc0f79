"""How much of the exact result a bundle's index finds, for its own users.

Dimensions: Q queries, M interests of a query, E output width.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import FeatureTable
from recsys.evaluation import embed_queries
from recsys.foundations import make_numpy_generator
from recsys.index import MeasuredRecall, StoredIndex, measure_recall, needs_retraining
from recsys.models import TwoTower
from recsys.serving import KnownUsers

_FEWEST_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class RecallSettings:
    """How index recall is measured.

    Attributes:
        k: Length of the lists.
        num_queries: Users asked, at most.
        seed: Of their choice and of the interval.
        drift: How far index recall may fall below what it was when the index was trained.
    """

    k: int
    num_queries: int
    seed: int
    drift: float


@dataclass(frozen=True)
class RecallMeter:
    """Measures indexes by the same queries.

    Attributes:
        settings: How.
        queries: [Q, E] or [Q, M, E], float32.
        when_trained: Recall of the bundle's main index when it was trained; None without queries.
    """

    settings: RecallSettings
    queries: NDArray[np.float32]
    when_trained: MeasuredRecall | None

    @classmethod
    def of(
        cls, bundle: Bundle, settings: RecallSettings, features: FeatureTable | None = None
    ) -> "RecallMeter":
        """Draw queries, and find or measure what the recall was when the index was trained.

        It is measured where the manifest has none of this k, on the main index alone.

        Args:
            bundle: Gives the users.
            settings: How.
            features: Those that items have by now; None: those of the bundle.
        """
        with _item_features(bundle.model, features):
            queries = _draw_queries(bundle, settings)
        meter = cls(settings, queries, None)
        noted = bundle.manifest.get("index_recall") or {}
        trained = noted.get("when_trained")
        if trained is not None and trained["k"] == settings.k:
            return cls(settings, queries, MeasuredRecall.from_json(trained))
        return cls(settings, queries, meter.measure(bundle.main_index))

    def measure(self, index: StoredIndex) -> MeasuredRecall | None:
        """Measure an index; None where there is nobody to ask."""
        if not len(self.queries):
            return None
        return measure_recall(index, self.queries, self.settings.k, self.settings.seed)

    def has_drifted(self, recall: MeasuredRecall | None) -> bool:
        """Tell whether recall has fallen by more than it may, and by more than chance."""
        if recall is None or self.when_trained is None:
            return False
        return needs_retraining(self.when_trained, recall, self.settings.drift)


def _draw_queries(bundle: Bundle, settings: RecallSettings) -> NDArray[np.float32]:
    """Embed users of whom the model reads anything, drawn by seed."""
    rng = make_numpy_generator(settings.seed, "queries of index recall")
    order, known = rng.permutation(len(bundle.users)), KnownUsers(bundle)
    step, found, count = max(settings.num_queries, _FEWEST_AT_ONCE), [], 0
    for start in range(0, len(order), step):
        ids = bundle.users.vocabulary.ids_of(order[start : start + step])
        queries = known.queries(ids, histories=None, features=None, context=None)
        told = np.flatnonzero(~queries.nothing_known())[: settings.num_queries - count]
        found.append(embed_queries(bundle.model, queries.take(told)))
        count += len(told)
        if count >= settings.num_queries:
            break
    return np.concatenate(found) if found else np.zeros((0, bundle.index.dim), np.float32)


@contextlib.contextmanager
def _item_features(model: TwoTower, features: FeatureTable | None) -> Iterator[None]:
    """Let histories that read the item tower read other features for a while."""
    before = model.item_features
    if features is None:
        yield
        return
    model.item_features, model.history_vectors = features, None
    try:
        yield
    finally:
        model.item_features, model.history_vectors = before, None
