"""The bridge from settings to baselines, chosen on validation and compared."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from recsys.baselines import Choice, Interactions, choose
from recsys.bundle import Bundle, read_bundle
from recsys.config.build_baseline_options import build_options
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_evaluation import (
    as_trained_on,
    check_judged,
    dataset_of_bundle,
    fitted_on,
    index_of_training,
    was_refit,
)
from recsys.config.schema_baselines import BaselinesConfig
from recsys.data import PreparedDataset, read_prepared
from recsys.evaluation import (
    Comparison,
    Ranker,
    Resampling,
    bonus_of,
    build_queries,
    choose_candidates,
    compare_rankers,
    embed_queries,
    known_to_model,
    mean_recall,
    rank_by_vectors,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compared:
    """What the baselines are fitted on, and whom they are compared with.

    Attributes:
        dataset: The prepared data set.
        bundle: Whose model is compared with every baseline; None: of none.
    """

    dataset: PreparedDataset
    bundle: Bundle | None


def read_compared(config: BaselinesConfig) -> Compared:
    """Read the bundle and its data set, or find or prepare the data set.

    Raises:
        ConfigError: The bundle belongs to another data set, or learnt from the part that judges.
    """
    if config.bundle is None:
        return Compared(read_prepared(find_or_prepare(config)), None)
    bundle = read_bundle(Path(config.bundle))
    check_judged(bundle, config.evaluation)
    index_of_training(bundle)  # refuses other items than those of the data set
    return Compared(dataset_of_bundle(bundle, config.dataset_dir), bundle)


def compare_baselines(config: BaselinesConfig, compared: Compared) -> Comparison:
    """Choose the settings of each baseline on validation, fit it, and compare all on one part.

    A baseline that the data do not allow is skipped with a warning that says why.
    """
    dataset = compared.dataset
    training = Interactions.of([dataset.train], num_items=dataset.num_items, clock=dataset.clock)
    score = _validation_score(config, dataset)
    known, learnt_from = _known(config, dataset, training)
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
        details[name] = _details(chosen, config.validate_at) | {"fitted_on": learnt_from}
    evaluation, bundle, model, reads = config.evaluation, compared.bundle, None, None
    if bundle is not None:
        details["model"] = {
            "bundle": str(bundle.path),
            "bundle_id": bundle.bundle_id,
            "fitted_on": fitted_on(refit=was_refit(bundle)),
        }
        dataset = as_trained_on(bundle, dataset)  # all is chosen: what counts now is the model's
        embed = partial(embed_queries, bundle.model)
        model = partial(rank_by_vectors, embed, bundle.index.exact, bonus=bonus_of(bundle.model))
        reads = partial(known_to_model, bundle.model)
    return compare_rankers(
        dataset,
        evaluation.part,
        rankers,
        ks=evaluation.k,
        resampling=Resampling(config.seed, evaluation.num_bootstrap, evaluation.confidence),
        details=details,
        skipped=skipped,
        candidates=evaluation.candidates,
        model=model,
        reads=reads,
    )


def _validation_score(
    config: BaselinesConfig, dataset: PreparedDataset
) -> Callable[[Ranker], float] | None:
    queries = build_queries(dataset, "validation")
    if len(queries) == 0:
        log.warning("the validation part is empty: the first of the listed settings are taken")
        return None
    ranked = choose_candidates(dataset, queries, config.evaluation.candidates)
    return lambda ranker: mean_recall(
        queries, ranker, config.validate_at, exclude_seen=dataset.exclude_seen, ranked=ranked
    )


def _known(
    config: BaselinesConfig, dataset: PreparedDataset, training: Interactions
) -> tuple[Interactions, str]:
    """Give what the chosen baselines learn from, and its name."""
    at_test = config.evaluation.part == "test"
    if not (config.refit and at_test and len(dataset.validation)):
        return training, fitted_on(refit=False)
    parts = [dataset.train, dataset.validation_input, dataset.validation]
    given = [part for part in parts if part is not None]
    joined = Interactions.of(given, num_items=dataset.num_items, clock=dataset.clock)
    return joined, fitted_on(refit=True)


def _details(chosen: Choice[Ranker], k: int) -> dict[str, Any]:
    return {
        "settings": dict(chosen.option.settings),
        "tried": [
            {"settings": dict(attempt.settings), f"validation_recall_at_{k}": attempt.score}
            for attempt in chosen.attempts
        ],
    }
