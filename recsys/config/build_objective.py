"""The bridge from settings to what is minimised."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import torch

from recsys.config import schema_loss as schema
from recsys.config.build_sampling import SamplingBuilder
from recsys.config.schema_sampling import draws_by_query
from recsys.config.schema_stages import TrainConfig
from recsys.data import FeatureTable, PreparedDataset
from recsys.foundations import ConfigError
from recsys.losses import full_logistic_loss, full_softmax_loss
from recsys.models import TwoTower
from recsys.sampling import MixedSampler, merge_repeats
from recsys.training import (
    CatalogueObjective,
    ExactImportance,
    ImportanceObjective,
    KnownPositives,
    MetropolisHastings,
    MonteCarlo,
    Objective,
    ReferenceObjective,
    SampledLoss,
    SampledObjective,
    SampleGrowth,
    grow_each,
    grow_shared,
    sampled_losses,
    smooth_catalogue_loss,
    smooth_sampled_loss,
)

_Loss = TypeVar("_Loss", bound=Callable[..., Any])


def build_objective(config: TrainConfig, dataset: PreparedDataset, model: TwoTower) -> Objective:
    """Build the loss and, where it draws, its samplers.

    Args:
        config: The settings.
        dataset: Gives item features, counts and sequences.
        model: Whose rankings the stream `hard` draws from.

    Raises:
        ConfigError: The loss is of no known kind, or the data cannot serve it.
    """
    features = dataset.items.features.take(np.arange(dataset.num_items))
    rounded = partial(_round_products, config.trainer.precision)
    sampling = SamplingBuilder(config, dataset)
    match config.loss:
        case schema.FullSoftmaxConfig(label_smoothing=smoothing, candidates=candidates):
            loss = smooth_catalogue_loss(rounded(full_softmax_loss), smoothing)
            counts = dataset.items.counts[: dataset.num_items]
            considered = np.flatnonzero(counts > 0) if candidates == "trained" else None
            return CatalogueObjective(loss, features, considered)
        case schema.FullLogisticConfig():
            return CatalogueObjective(rounded(full_logistic_loss), features)
        case schema.CorrectedLossConfig() as loss:
            of_rows = rounded(_softmax_loss(loss))
            return _softmax(loss, sampling, dataset, features, model, of_rows=of_rows)
        case schema.BinaryLossConfig() as loss:
            of_rows = rounded(_binary_loss(loss))
            return SampledObjective(sampling.drawn(loss.num_sampled), features, of_rows)
        case schema.ImportanceSamplingConfig() as loss:
            grow = grow_each if draws_by_query(config.sampler) else grow_shared
            growth = SampleGrowth(
                min_ess=loss.min_ess,
                max_samples=loss.max_samples,
                ess_quantile=loss.ess_quantile,
            )
            return ImportanceObjective(sampling.drawn(loss.num_sampled), features, growth, grow)
        case schema.MonteCarloConfig() as loss:
            return _reference(loss, sampling, features)
    raise ConfigError(f"loss is of no known kind: {type(config.loss).__name__}.")


def _round_products(precision: str, loss: _Loss) -> _Loss:
    """Make a loss round the factors of its matrix products, as the setting says."""
    if precision != "bfloat16":
        return loss
    return cast(_Loss, partial(loss, product_dtype=torch.bfloat16))


def _softmax(
    loss: schema.CorrectedLossConfig,
    sampling: SamplingBuilder,
    dataset: PreparedDataset,
    features: FeatureTable,
    model: TwoTower,
    *,
    of_rows: SampledLoss,
) -> SampledObjective:
    names, popularity = _streams_of(loss), sampling.popularity()
    samplers = [sampling.stream(name, _num_sampled(loss), popularity, model) for name in names]
    known = None
    if loss.mask_known_positives:
        known = KnownPositives(dataset.train, dataset.num_items)
    return SampledObjective(
        samplers[0] if len(samplers) == 1 else MixedSampler(samplers),
        features,
        smooth_sampled_loss(of_rows, loss.label_smoothing, dataset.num_items),
        popularity=popularity if {"in_batch", "memory"} & set(names) else None,
        known_positives=known,
        shorten=merge_repeats if _may_merge(loss) else None,
    )


def _may_merge(loss: schema.CorrectedLossConfig) -> bool:
    """Tell whether a loss is the same where one column stands for all draws of a candidate."""
    exact = loss.log_q == "standard" and loss.label_smoothing == 0
    return exact and loss.mask_accidental_hits


def _reference(
    loss: schema.MonteCarloConfig, sampling: SamplingBuilder, features: FeatureTable
) -> ReferenceObjective:
    size = loss.num_sampled
    match loss:
        case schema.MetropolisHastingsConfig(burn_in=burn_in):
            chain = MetropolisHastings(sampling.proposal(), num_sampled=size, burn_in=burn_in)
            return ReferenceObjective(chain, features)
        case schema.ExactImportanceConfig():
            return ReferenceObjective(
                ExactImportance(sampling.proposal(), num_sampled=size), features
            )
        case _:
            return ReferenceObjective(MonteCarlo(num_sampled=size), features)


def _streams_of(loss: schema.CorrectedLossConfig) -> list[str]:
    """Give the streams that a softmax over a sample is made of."""
    match loss:
        case schema.MixedConfig(streams=streams):
            return streams
        case schema.SampledSoftmaxConfig():
            return ["drawn"]
        case _:
            return ["in_batch"]


def searches_while_training(loss: schema.LossConfig) -> bool:
    """Tell whether steps draw from what the index group's index finds."""
    return isinstance(loss, schema.CorrectedLossConfig) and "hard" in _streams_of(loss)


def _num_sampled(loss: schema.CorrectedLossConfig) -> int:
    """Give the draws of the stream `drawn`; 0 where there is none."""
    return loss.num_sampled if isinstance(loss, schema.SampledSoftmaxConfig) else 0


def _softmax_loss(loss: schema.CorrectedLossConfig) -> SampledLoss:
    masked = loss.mask_accidental_hits
    match loss.log_q:
        case "refined":
            return sampled_losses.refined_softmax
        case "none":
            return partial(sampled_losses.uncorrected_softmax, remove_accidental_hits=masked)
        case _:
            return partial(sampled_losses.standard_softmax, remove_accidental_hits=masked)


def _binary_loss(loss: schema.BinaryLossConfig) -> SampledLoss:
    match loss:
        case schema.NegativeSamplingConfig():
            return sampled_losses.negative_sampling
        case schema.NoiseContrastiveConfig():
            return sampled_losses.noise_contrastive
        case schema.SampledLogisticConfig():
            return sampled_losses.sampled_logistic
        case schema.BprConfig():
            return sampled_losses.bpr
    raise ConfigError(f"loss is of no known kind: {type(loss).__name__}.")
