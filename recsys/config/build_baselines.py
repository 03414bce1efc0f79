"""The bridge from settings to baselines, chosen on validation and compared."""

import itertools
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from recsys.baselines import Choice, Ease, Interactions, ItemKnn, Option, choose, recent_counts
from recsys.config.schema_baselines import BaselinesConfig
from recsys.data import PreparedDataset
from recsys.evaluation import (
    Comparison,
    PopularityRanker,
    Ranker,
    Resampling,
    build_queries,
    compare_rankers,
    mean_recall,
)

log = logging.getLogger(__name__)
Options = list[Option[Ranker]]


def compare_baselines(config: BaselinesConfig, dataset: PreparedDataset) -> Comparison:
    """Choose the settings of each baseline on validation, fit it, and compare all on one part.

    A baseline that the data do not allow is skipped with a warning that says why.
    """
    training = Interactions.of([dataset.train], num_items=dataset.num_items, clock=dataset.clock)
    score = _validation_score(config, dataset)
    known, fitted_on = _known(config, dataset, training)
    rankers: dict[str, Ranker] = {}
    details: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    for name in config.systems:
        options = build_options(name, config, dataset)
        if isinstance(options, str):
            log.warning("%s is skipped: %s", name, options)
            skipped[name] = options
            continue
        chosen = choose(options, training, score)
        rankers[name] = chosen.option.fit(known)
        details[name] = _details(chosen, config.validate_at) | {"fitted_on": fitted_on}
    evaluation = config.evaluation
    return compare_rankers(
        dataset,
        evaluation.part,
        rankers,
        ks=evaluation.k,
        resampling=Resampling(config.seed, evaluation.num_bootstrap, evaluation.confidence),
        details=details,
        skipped=skipped,
    )


def build_options(name: str, config: BaselinesConfig, dataset: PreparedDataset) -> Options | str:
    """List the settings of a baseline to choose from, or say why the data do not allow it."""
    match name:
        case "recent_popularity":
            if dataset.clock != "time":
                return "the data set has no clock"
            counts = dataset.items.counts[: dataset.num_items]
            days = config.recent_popularity.days
            return [Option({"days": some}, _recent(some, counts)) for some in days]
        case "item_knn":
            pairs = itertools.product(config.item_knn.num_neighbours, config.item_knn.shrinkage)
            return [
                Option(
                    {"neighbours": number, "shrinkage": shrinkage},
                    partial(ItemKnn, num_neighbours=number, shrinkage=shrinkage),
                )
                for number, shrinkage in pairs
            ]
        case _:
            limit = config.ease.max_items
            if dataset.num_items > limit:
                return f"{dataset.num_items:,} items are more than ease.max_items={limit:,}"
            return [
                Option({"lambda": strength}, partial(Ease, regularization=strength))
                for strength in config.ease.regularization
            ]


def _recent(days: float, counts: Any) -> Callable[[Interactions], Ranker]:
    """Rank by what is recent; equal counts, 0 among them, by all training events."""

    def fit(interactions: Interactions) -> Ranker:
        return PopularityRanker(
            recent_counts(interactions, days) * (int(counts.max(initial=0)) + 1) + counts
        )

    return fit


def _validation_score(
    config: BaselinesConfig, dataset: PreparedDataset
) -> Callable[[Ranker], float] | None:
    queries = build_queries(dataset, "validation")
    if len(queries) == 0:
        log.warning("the validation part is empty: the first of the listed settings are taken")
        return None
    return lambda ranker: mean_recall(
        queries, ranker, config.validate_at, exclude_seen=dataset.exclude_seen
    )


def _known(
    config: BaselinesConfig, dataset: PreparedDataset, training: Interactions
) -> tuple[Interactions, str]:
    """Give what the chosen baselines learn from, and its name."""
    at_test = config.evaluation.part == "test" and dataset.test_input is None
    if not (config.refit and at_test and len(dataset.validation)):
        return training, "training"
    parts = [dataset.train, dataset.validation]
    joined = Interactions.of(parts, num_items=dataset.num_items, clock=dataset.clock)
    return joined, "training and validation"


def _details(chosen: Choice[Ranker], k: int) -> dict[str, Any]:
    return {
        "settings": dict(chosen.option.settings),
        "tried": [
            {"settings": dict(attempt.settings), f"validation_recall_at_{k}": attempt.score}
            for attempt in chosen.attempts
        ],
    }
