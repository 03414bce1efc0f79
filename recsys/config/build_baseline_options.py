"""The settings of each baseline to choose from, or why the data do not allow it."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from recsys.baselines import (
    ContentKnn,
    Ease,
    Ials,
    Interactions,
    ItemKnn,
    Option,
    OwnItems,
    ials_is_missing,
    item_vectors,
    recent_counts,
)
from recsys.config.schema_baselines import BaselinesConfig
from recsys.data import PreparedDataset
from recsys.evaluation import PopularityRanker, Ranker
from recsys.foundations import available_cores

Options = list[Option[Ranker]]


def build_options(name: str, config: BaselinesConfig, dataset: PreparedDataset) -> Options | str:
    """List the settings of a baseline to choose from, or say why the data do not allow it."""
    match name:
        case "recent_popularity":
            return _recent_popularity(config, dataset)
        case "own_items":
            return _own_items(config, dataset)
        case "item_knn":
            return _item_knn(config)
        case "content_knn":
            return _content_knn(config, dataset)
        case "ease":
            return _ease(config, dataset)
        case _:
            return _ials(config)


def _recent_popularity(config: BaselinesConfig, dataset: PreparedDataset) -> Options | str:
    if dataset.clock != "time":
        return "the data set has no clock"
    counts = dataset.items.counts[: dataset.num_items]
    return [Option({"days": days}, _recent(days, counts)) for days in config.recent_popularity.days]


def _recent(days: float, counts: Any) -> Callable[[Interactions], Ranker]:
    """Rank by what is recent; equal counts, 0 among them, by all training events."""

    def fit(interactions: Interactions) -> Ranker:
        return PopularityRanker(
            recent_counts(interactions, days) * (int(counts.max(initial=0)) + 1) + counts
        )

    return fit


def _own_items(config: BaselinesConfig, dataset: PreparedDataset) -> Options | str:
    if dataset.exclude_seen:
        return "what a user had is not shown again (dataset.exclude_seen=true)"
    return [
        Option({"decay": decay}, _without_learning(OwnItems(dataset.num_items, decay=decay)))
        for decay in config.own_items.decay
    ]


def _item_knn(config: BaselinesConfig) -> Options:
    pairs = itertools.product(config.item_knn.num_neighbours, config.item_knn.shrinkage)
    return [
        Option(
            {"neighbours": number, "shrinkage": shrinkage},
            partial(ItemKnn, num_neighbours=number, shrinkage=shrinkage),
        )
        for number, shrinkage in pairs
    ]


def _content_knn(config: BaselinesConfig, dataset: PreparedDataset) -> Options | str:
    if not len(dataset.items.features.schema):
        return "items have no features"
    vectors = item_vectors(dataset.items.features, dataset.num_items)
    return [
        Option({"decay": decay}, _without_learning(ContentKnn(vectors, decay=decay)))
        for decay in config.content_knn.decay
    ]


def _ease(config: BaselinesConfig, dataset: PreparedDataset) -> Options | str:
    limit = config.ease.max_items
    if dataset.num_items > limit:
        return f"{dataset.num_items:,} items are more than ease.max_items={limit:,}"
    return [
        Option({"lambda": strength}, partial(Ease, regularization=strength))
        for strength in config.ease.regularization
    ]


def _ials(config: BaselinesConfig) -> Options | str:
    missing, ials = ials_is_missing(), config.ials
    if missing is not None:
        return missing
    threads = available_cores() if config.threads is None else config.threads
    triples = itertools.product(ials.dim, ials.regularization, ials.unobserved_weight)
    return [
        Option(
            {"dim": dim, "lambda": strength, "weight": weight},
            partial(
                Ials,
                dim=dim,
                regularization=strength,
                unobserved_weight=weight,
                iterations=ials.iterations,
                num_threads=threads,
                seed=config.seed,
            ),
        )
        for dim, strength, weight in triples
    ]


def _without_learning(ranker: Ranker) -> Callable[[Interactions], Ranker]:
    return lambda interactions: ranker  # noqa: ARG005
