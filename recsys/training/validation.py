"""What a model does on the validation part, between epochs, over the whole catalogue."""

import logging
from functools import partial

import numpy as np

from recsys.data import PreparedDataset
from recsys.evaluation import (
    CatalogueSoftmax,
    EvaluationQueries,
    RankedCandidates,
    build_queries,
    choose_candidates,
    embed_queries,
    quick_metrics,
)
from recsys.foundations import make_numpy_generator
from recsys.index import ExactIndex
from recsys.models import TwoTower, encode_candidates

log = logging.getLogger(__name__)

_ITEMS_NAMED = 5


class Validator:
    """Recall@k and the likelihood of a model on the validation part.

    Says in the log which validation events have no likelihood, as their items are no candidates.

    Args:
        dataset: Its validation part may be empty; then there is nothing to measure.
        k: List length.
        max_users: At most so many users, drawn by seed; None: all.
        seed: Of that draw.
        candidates: What is ranked: "all" or "cold", as in `evaluate_retrieval`.

    Raises:
        DataError: "cold", and no item of the validation part is.
    """

    def __init__(
        self,
        dataset: PreparedDataset,
        *,
        k: int,
        max_users: int | None,
        seed: int,
        candidates: str = "all",
    ) -> None:
        self.k, self._dataset = k, dataset
        self._queries, self._ranked = draw_queries(
            dataset, max_users=max_users, seed=seed, candidates=candidates
        )
        _log_unknown_items(dataset, self._queries)

    def measure(self, model: TwoTower) -> dict[str, float]:
        """Embed the catalogue once and give the numbers of a model.

        Args:
            model: Is left in the mode it was in.

        Returns:
            `recall_at_<k>` (mean over users with a validation event); `log_likelihood` (nats, mean
            over events), `perplexity`, `num_scored_events` and `num_unknown_events`, as
            `CatalogueSoftmax` explains them. Empty without a validation event; the likelihood is
            left out where no event can be scored.
        """
        if len(self._queries) == 0:
            return {}
        dataset = self._dataset
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        recall, temperature = f"recall_at_{self.k}", float(model.temperature().detach())
        metrics = quick_metrics(
            self._queries,
            embed=partial(embed_queries, model),
            exact=ExactIndex(vectors),
            ks=[self.k],
            exclude_seen=dataset.exclude_seen,
            softmax=CatalogueSoftmax(vectors, temperature, model.training_dim),
            ranked=self._ranked,
        )
        names = recall, "log_likelihood", "perplexity", "num_scored_events", "num_unknown_events"
        return {name: metrics[name] for name in names if name in metrics}


def draw_queries(
    dataset: PreparedDataset, *, max_users: int | None, seed: int, candidates: str
) -> tuple[EvaluationQueries, RankedCandidates]:
    """Give the queries of the validation part, and what is ranked for them; see `Validator`."""
    queries = build_queries(dataset, "validation")
    if len(queries) == 0:
        return queries, RankedCandidates("all", None, dataset.num_items)
    ranked = choose_candidates(dataset, queries, candidates)
    if max_users is not None and max_users < len(queries):
        chosen = make_numpy_generator(seed, "validation").permutation(len(queries))[:max_users]
        queries = queries.take(np.sort(chosen))
    return queries, ranked


def _log_unknown_items(dataset: PreparedDataset, queries: EvaluationQueries) -> None:
    rows = queries.chosen.rows
    unknown = rows[rows >= dataset.num_items]
    if len(unknown) == 0:
        return
    items = np.unique(unknown)
    some = dataset.items.vocabulary.ids_of(items[:_ITEMS_NAMED]).to_pylist()
    log.info(
        "validation: %d of %d events are of items that are no candidates, so they have no "
        "likelihood (%d items: %s%s)",
        len(unknown),
        len(rows),
        len(items),
        ", ".join(some),
        ", ..." if len(items) > len(some) else "",
    )
