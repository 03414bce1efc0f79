"""What a model does on the validation part, between epochs, over the whole catalogue."""

import logging
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation import (
    CatalogueSoftmax,
    Embed,
    EvaluationQueries,
    PopularityList,
    RankedCandidates,
    bonus_of,
    build_queries,
    choose_candidates,
    embed_queries,
    known_to_model,
    quick_metrics,
)
from recsys.foundations import make_numpy_generator
from recsys.index import ExactIndex
from recsys.models import TwoTower, encode_candidates
from recsys.training.kept_vectors import KeptVectors
from recsys.training.repeats_choice import choose_repeats
from recsys.training.ridge_scale import choose_ridge_scale, scale_behind

log = logging.getLogger(__name__)

_ITEMS_NAMED = 5
_USERS_THAT_CHOOSE = 2000


class Validator:
    """Recall@k and the likelihood of a model on the validation part.

    Users of whom the model reads nothing get popular items, as in `evaluate_retrieval`.

    Says in the log which validation events have no likelihood, as their items are no candidates.

    Args:
        dataset: Its validation part may be empty; then there is nothing to measure.
        k: List length.
        max_users: At most so many users, drawn by seed; None: all.
        seed: Of that draw.
        candidates: What is ranked: "all" or "cold", as in `evaluate_retrieval`.
        ridge_scales: What the scores of the model's ridge part may be multiplied by; that of the
            best NDCG@100 is chosen each time, on at most 2,000 users. Fewer than two, or of cold
            candidates, of which a ridge part knows nothing: the model keeps what it has.
        repeats: Weights and decays of the bonus for items that users had; the best is chosen each
            time, likewise, after the scale. Fewer than two: the model keeps what it has.

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
        ridge_scales: Sequence[float] = (),
        repeats: Sequence[tuple[float, float]] = (),
    ) -> None:
        self.k, self._dataset = k, dataset
        self._queries, self._ranked = draw_queries(
            dataset, max_users=max_users, seed=seed, candidates=candidates
        )
        _log_unknown_items(dataset, self._queries)
        counts = dataset.items.counts[: dataset.num_items]
        self._popular = PopularityList(counts, self._ranked.rows)
        self._scales = ridge_scales if len(ridge_scales) > 1 and candidates != "cold" else ()
        if len(ridge_scales) > 1 and not self._scales:
            log.info("the ridge part knows nothing of cold items: its first scale is taken")
        self._repeats = repeats if len(repeats) > 1 else ()
        if self._scales or self._repeats:
            self._choosers = draw_choosers(dataset, max_users, seed=seed, candidates=candidates)[0]
        if len(self._queries) == 0:
            for key, several in (("ridge.scale", self._scales), ("repeats.weight", self._repeats)):
                if several:
                    log.warning("the validation part is empty: the first model.%s is taken", key)

    def measure(self, model: TwoTower) -> dict[str, float]:
        """Embed the catalogue and each query once and give the numbers of a model.

        Args:
            model: Is left in the mode it was in; where there are scales to choose from, its ridge
                part takes the best one, whichever it had, and so does its bonus for repeats.

        Returns:
            `recall_at_<k>` (mean over users with a validation event); `log_likelihood` (nats, mean
            over events), `perplexity`, `num_scored_events` and `num_unknown_events`, as
            `CatalogueSoftmax` explains them; `ridge_scale` where there are several;
            `repeats_weight` and `repeats_decay` likewise. Empty without a validation event; the
            likelihood is left out where no event can be scored.
        """
        if len(self._queries) == 0:
            return {}
        dataset = self._dataset
        if self._scales:
            model.set_ridge_scale(1.0)  # what is chosen must not depend on what was chosen last
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        exact = ExactIndex(vectors)
        embed: Embed = partial(embed_queries, model)
        if self._scales or self._repeats:
            embed = KeptVectors(embed, self._choosers)  # they are asked for each choice and at last
        scale = self._choose_scale(embed, vectors, model.training_dim) if self._scales else 1.0
        recall, temperature = f"recall_at_{self.k}", float(model.temperature().detach())
        embed = scale_behind(embed, model.training_dim, scale)
        if self._repeats:
            model.set_repeats(*self._choose_repeats(embed, exact, model.history_length))
        metrics = quick_metrics(
            self._queries.read_by(partial(known_to_model, model)),
            embed=embed,
            exact=exact,
            ks=[self.k],
            exclude_seen=dataset.exclude_seen,
            softmax=CatalogueSoftmax(vectors, temperature, model.training_dim),
            ranked=self._ranked,
            bonus=bonus_of(model),
            popular=self._popular,
        )
        names = recall, "log_likelihood", "perplexity", "num_scored_events", "num_unknown_events"
        scores = {name: metrics[name] for name in names if name in metrics}
        if self._repeats:
            spec = model.spec
            scores |= {"repeats_weight": spec.repeats_weight, "repeats_decay": spec.repeats_decay}
        if not self._scales:
            return scores
        model.set_ridge_scale(scale)
        return scores | {"ridge_scale": scale}

    def _choose_repeats(self, embed: Embed, exact: ExactIndex, length: int) -> tuple[float, float]:
        return choose_repeats(
            self._repeats,
            self._choosers,
            embed=embed,
            exact=exact,
            length=length,
            ranked=self._ranked,
        )

    def _choose_scale(self, embed: Embed, vectors: NDArray[np.float32], dim: int) -> float:
        return choose_ridge_scale(
            self._scales,
            self._choosers,
            embed=embed,
            vectors=vectors,
            dim=dim,
            exclude_seen=self._dataset.exclude_seen,
        )


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


def draw_choosers(
    dataset: PreparedDataset, max_users: int | None, *, seed: int, candidates: str
) -> tuple[EvaluationQueries, RankedCandidates]:
    """Give 2,000 of them at most, enough to choose a setting by."""
    most = _USERS_THAT_CHOOSE if max_users is None else min(max_users, _USERS_THAT_CHOOSE)
    return draw_queries(dataset, max_users=most, seed=seed, candidates=candidates)


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
