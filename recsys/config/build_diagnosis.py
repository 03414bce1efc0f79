"""The bridge from settings to a diagnosis: the model, the estimators, the plan."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recsys.bundle import read_bundle
from recsys.config.build import build_fresh_model
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_evaluation import dataset_of_bundle, index_of_training
from recsys.config.schema_diagnosis import DiagnoseConfig
from recsys.data import PreparedDataset, consecutive_pairs, read_prepared
from recsys.diagnosis import Diagnosis, DiagnosisPlan, Material, Towers, diagnose
from recsys.evaluation import Resampling
from recsys.models import encode_candidates


@dataclass(frozen=True)
class Diagnosed:
    """What is diagnosed.

    Attributes:
        dataset: The prepared data set.
        towers: The bundle's model, or a fresh one.
        about: Where it comes from, as plain values.
    """

    dataset: PreparedDataset
    towers: Towers
    about: dict[str, Any]


def read_diagnosed(config: DiagnoseConfig) -> Diagnosed:
    """Read the bundle and its data set, or make a fresh model for the data set.

    Raises:
        ConfigError: The bundle belongs to another data set.
    """
    if config.bundle is not None:
        bundle = read_bundle(Path(config.bundle))
        dataset = dataset_of_bundle(bundle, config.dataset_dir)
        towers = Towers(bundle.model, index_of_training(bundle).vectors)
        about: dict[str, Any] = {"bundle": str(bundle.path), "bundle_id": bundle.bundle_id}
    else:
        dataset = read_prepared(find_or_prepare(config))
        alone = replace(config.model, ridge=replace(config.model.ridge, dim=0))  # what trains
        model = build_fresh_model(alone, dataset, sparse=True).eval()
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        towers = Towers(model, vectors)
        about = {"bundle": None, "bundle_id": None}
    about |= {"dataset_dir": str(dataset.path), "dataset_fingerprint": dataset.fingerprint}
    return Diagnosed(dataset, towers, about)


def diagnose_as_set(config: DiagnoseConfig, diagnosed: Diagnosed) -> Diagnosis:
    """Diagnose the estimators that the settings name.

    Raises:
        DataError: The validation part holds no positive with training events.
    """
    dataset, ties = diagnosed.dataset, config.history.ties
    material = Material(
        counts=dataset.items.counts[: dataset.num_items],
        pairs=consecutive_pairs(dataset.train, dataset.clock, ties),
        batch_size=min(config.batch_size, len(dataset.train)),
        unigram_share=config.unigram_share,
        ess_quantile=config.ess_quantile,
        burn_in_share=config.burn_in_share,
        max_exact_items=config.max_exact_items,
    )
    plan = DiagnosisPlan(
        estimators=config.estimators,
        sample_sizes=config.sample_sizes,
        num_positives=config.num_positives,
        num_draws=config.num_draws,
        batch_size=config.batch_size,
        num_batches=config.num_batches,
        ties=ties,
        target=config.target,
        k=config.k,
        max_users=config.max_users,
        resampling=Resampling(config.seed, config.num_bootstrap, config.confidence),
    )
    return diagnose(dataset, diagnosed.towers, material, plan, diagnosed.about)
