"""The bridge from settings to an evaluation: of a model, of a bundle, of ranked lists."""

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from recsys.bundle import Bundle, read_bundle
from recsys.config.schema_stages import EvaluateConfig, TrainConfig
from recsys.config.schema_training import EvaluationConfig
from recsys.data import PreparedDataset, count_validation, read_prepared
from recsys.evaluation import (
    CatalogueSoftmax,
    Report,
    bonus_of,
    embed_queries,
    evaluate_ranked,
    evaluate_retrieval,
    known_to_model,
    read_ranked,
    read_truth,
)
from recsys.foundations import ConfigError
from recsys.index import MainIndex
from recsys.models import TwoTower

log = logging.getLogger(__name__)


def evaluate_model(
    config: TrainConfig, dataset: PreparedDataset, model: TwoTower, index: MainIndex
) -> Report | None:
    """Evaluate a model on the part that is set; None where it is empty.

    Args:
        config: Of the run that trained the model.
        dataset: With the training events counted that the model met.
        model: Both towers.
        index: Over the vectors of its items.
    """
    evaluation, refit = config.evaluation, config.trainer.refit
    part = dataset.test if evaluation.part == "test" else dataset.validation
    if len(part) == 0:
        return None
    return _evaluate(evaluation, evaluation.k, dataset, model, index, seed=config.seed, refit=refit)


def evaluate_as_set(config: EvaluateConfig) -> Report:
    """Evaluate the bundle or the ranked lists that the settings name.

    Raises:
        ConfigError: The bundle belongs to another dataset.
        DataError: There is nothing to evaluate on.
    """
    if config.ranked is not None and config.truth is not None:
        return evaluate_ranked(
            read_ranked(Path(config.ranked)),
            read_truth(Path(config.truth)),
            config.k,
            seed=config.seed,
            num_resamples=config.evaluation.num_bootstrap,
            level=config.evaluation.confidence,
        )
    bundle = read_bundle(Path(str(config.bundle)))
    check_judged(bundle, config.evaluation)
    index = index_of_training(bundle)
    return _evaluate(
        config.evaluation,
        config.k,
        as_trained_on(bundle, dataset_of_bundle(bundle, config.dataset_dir)),
        bundle.model,
        index,
        seed=config.seed,
        refit=was_refit(bundle),
    )


def _evaluate(
    config: EvaluationConfig,
    ks: list[int],
    dataset: PreparedDataset,
    model: TwoTower,
    index: MainIndex,
    *,
    seed: int,
    refit: bool,
) -> Report:
    vectors, temperature = index.exact.vectors, float(model.temperature().detach())
    softmax = CatalogueSoftmax(vectors, temperature, model.training_dim)
    report = evaluate_retrieval(
        dataset,
        config.part,
        embed=partial(embed_queries, model),
        reads=partial(known_to_model, model),
        exact=index.exact,
        approximate=index,
        ks=ks,
        seed=seed,
        num_resamples=config.num_bootstrap,
        level=config.confidence,
        candidates=config.candidates,
        softmax=softmax,
        popularity_alphas=config.popularity_alphas,
        bonus=bonus_of(model),
    )
    about = report.about | {"fitted_on": fitted_on(refit=refit)}
    return replace(report, about=about | _about_ridge(model) | _about_repeats(model))


def _about_ridge(model: TwoTower) -> dict[str, Any]:
    """Give the settings of a ridge part, which may have been chosen among several."""
    if model.ridge is None:
        return {}
    spec = model.spec
    chosen = {
        "dim": spec.ridge_dim,
        "regularization": spec.ridge_regularization,
        "unobserved": spec.ridge_unobserved,
        "scale": spec.ridge_scale,
    }
    return {"ridge": chosen}


def _about_repeats(model: TwoTower) -> dict[str, Any]:
    """Give the bonus of items that users had, likewise."""
    repeats = model.repeats
    return (
        {} if repeats is None else {"repeats": {"weight": repeats.weight, "decay": repeats.decay}}
    )


def check_judged(bundle: Bundle, evaluation: EvaluationConfig) -> None:
    """Check that a bundle's model was not trained on what it is to be judged by.

    Warns where other candidates are ranked than when it was trained.

    Raises:
        ConfigError: It was: by `trainer.refit`, on validation.
    """
    ranked = bundle.config.get("evaluation", {}).get("candidates", "all")
    if ranked != evaluation.candidates:
        log.warning(
            "ranking evaluation.candidates=%s; training reported those of evaluation.candidates=%s",
            evaluation.candidates,
            ranked,
        )
    if evaluation.part == "validation" and was_refit(bundle):
        raise ConfigError(
            f"evaluation.part=validation says nothing of the bundle {bundle.path}, which was "
            "trained on the validation part too (trainer.refit=true): take evaluation.part=test."
        )


def index_of_training(bundle: Bundle) -> MainIndex:
    """Give a bundle's index, which must be over the items of the data set it was trained on.

    Raises:
        ConfigError: Its items have been updated since; the message names the bundle before that.
    """
    if bundle.changes or not isinstance(bundle.index, MainIndex):
        raise ConfigError(
            f"bundle={bundle.path} has other items than the dataset it was trained on, as "
            "recsys update changed them; take the bundle before the first update, "
            f"{bundle.manifest.get('origin')}, which lay in "
            f"{bundle.manifest['provenance'].get('origin_path')}."
        )
    return bundle.index


def fitted_on(*, refit: bool) -> str:
    """Name the parts that a model or a baseline has learnt from."""
    return "training and validation" if refit else "training"


def was_refit(bundle: Bundle) -> bool:
    """Tell whether `trainer.refit` trained a bundle's model on validation too."""
    return bool(bundle.config.get("trainer", {}).get("refit", False))


def as_trained_on(bundle: Bundle, dataset: PreparedDataset) -> PreparedDataset:
    """Give a bundle's data set with the training events counted that its model met."""
    return count_validation(dataset) if was_refit(bundle) else dataset


def dataset_of_bundle(bundle: Bundle, dataset_dir: str | None) -> PreparedDataset:
    """Read the data set that a bundle was trained on.

    Args:
        bundle: The bundle.
        dataset_dir: Where it lies; None: where it lay then.

    Raises:
        ConfigError: It is not there, or it is another one.
    """
    dataset = read_prepared(_folder_of_dataset(bundle, dataset_dir))
    if dataset.fingerprint != bundle.dataset_fingerprint:
        raise ConfigError(
            f"bundle={bundle.path} was not trained on dataset_dir={dataset.path}: their "
            "fingerprints differ."
        )
    return dataset


def _folder_of_dataset(bundle: Bundle, dataset_dir: str | None) -> Path:
    if dataset_dir is not None:
        return Path(dataset_dir)
    noted = bundle.manifest["provenance"].get("dataset_dir")
    if noted is None or not Path(noted).is_dir():
        raise ConfigError(
            f"dataset_dir must name the prepared dataset of bundle={bundle.path}; "
            f"it is not at {noted} any more."
        )
    return Path(noted)
