"""The bridge from settings to what is minimised: losses, samplers, popularity."""

from functools import partial

import numpy as np
import torch

from recsys.config import schema_loss as loss_schema
from recsys.config import schema_sampling as sampling_schema
from recsys.config.build_index import build_index_settings
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset, consecutive_pairs
from recsys.foundations import ConfigError
from recsys.index import FaissIndex
from recsys.losses import full_logistic_loss, full_softmax_loss
from recsys.models import TwoTower, encode_candidates
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    CountMinPopularity,
    DeduplicatedSampler,
    DistinctSampler,
    ExactPopularity,
    InBatchSampler,
    IndependentSampler,
    LearnedUnigramProposal,
    LogUniformProposal,
    MemorySampler,
    MixedSampler,
    PerQuerySampler,
    Popularity,
    PopularityProposal,
    Proposal,
    Sampler,
    SeededHashing,
    StreamingPopularity,
    UniformProposal,
    WithReplacementSampler,
)
from recsys.training import (
    CatalogueObjective,
    ExactImportance,
    ImportanceObjective,
    KnownPositives,
    MetropolisHastings,
    MonteCarlo,
    Objective,
    ReferenceObjective,
    RefreshedHardNegatives,
    SampledLoss,
    SampledObjective,
    SampleGrowth,
    grow_each,
    grow_shared,
    sampled_losses,
)


def build_objective(config: TrainConfig, dataset: PreparedDataset, model: TwoTower) -> Objective:
    """Build the loss and, where it draws, its samplers.

    Args:
        config: The settings.
        dataset: Gives item features, counts and sequences.
        model: Whose rankings the stream `hard` draws from.

    Raises:
        ConfigError: The loss is of no known kind, or the data cannot serve it.
    """
    return _Builder(config, dataset, model).objective()


class _Builder:
    """What the parts of one objective are built from."""

    def __init__(self, config: TrainConfig, dataset: PreparedDataset, model: TwoTower) -> None:
        self._config, self._dataset, self._model = config, dataset, model
        self._features = dataset.items.features.take(np.arange(dataset.num_items))
        self._counts = dataset.items.counts[: dataset.num_items]

    def objective(self) -> Objective:
        features = self._features
        match self._config.loss:
            case loss_schema.FullSoftmaxConfig():
                return CatalogueObjective(full_softmax_loss, features)
            case loss_schema.FullLogisticConfig():
                return CatalogueObjective(full_logistic_loss, features)
            case loss_schema.CorrectedLossConfig() as loss:
                return self._softmax(loss)
            case loss_schema.BinaryLossConfig() as loss:
                sampler = self._drawn(loss.num_sampled)
                return SampledObjective(sampler, features, _binary_loss(loss))
            case loss_schema.ImportanceSamplingConfig() as loss:
                return self._importance(loss)
            case loss_schema.MonteCarloConfig() as loss:
                return self._reference(loss)
        raise ConfigError(f"loss is of no known kind: {type(self._config.loss).__name__}.")

    def _softmax(self, loss: loss_schema.CorrectedLossConfig) -> Objective:
        names, popularity = streams_of(loss), self._popularity()
        streams = {
            "in_batch": lambda: InBatchSampler(popularity),
            "drawn": lambda: self._drawn(num_sampled(loss)),
            "memory": lambda: self._memory(popularity),
            "hard": self._hard,
        }
        samplers = [streams[name]() for name in names]
        known = None
        if loss.mask_known_positives:
            known = KnownPositives(self._dataset.train, self._dataset.num_items)
        return SampledObjective(
            samplers[0] if len(samplers) == 1 else MixedSampler(samplers),
            self._features,
            _softmax_loss(loss),
            popularity=popularity if {"in_batch", "memory"} & set(names) else None,
            known_positives=known,
        )

    def _importance(self, loss: loss_schema.ImportanceSamplingConfig) -> Objective:
        growth = SampleGrowth(
            min_ess=loss.min_ess,
            max_samples=loss.max_samples,
            ess_quantile=loss.ess_quantile,
        )
        own = draws_by_query(self._config.sampler)
        return ImportanceObjective(
            self._drawn(loss.num_sampled),
            self._features,
            growth,
            grow_each if own else grow_shared,
        )

    def _reference(self, loss: loss_schema.MonteCarloConfig) -> Objective:
        size = loss.num_sampled
        match loss:
            case loss_schema.MetropolisHastingsConfig(burn_in=burn_in):
                proposal = self._proposal()
                weigh = MetropolisHastings(proposal, num_sampled=size, burn_in=burn_in)
                return ReferenceObjective(weigh, self._features)
            case loss_schema.ExactImportanceConfig():
                weigh_exactly = ExactImportance(self._proposal(), num_sampled=size)
                return ReferenceObjective(weigh_exactly, self._features)
            case _:
                return ReferenceObjective(MonteCarlo(num_sampled=size), self._features)

    def _drawn(self, size: int) -> Sampler:
        match self._config.sampler:
            case sampling_schema.BigramConfig(unigram_share=share):
                return BigramSampler(self._bigram(share), num_sampled=size)
            case sampling_schema.ProposalConfig(mode="per_query"):
                return PerQuerySampler(self._proposal(), num_sampled=size)
            case sampling_schema.ProposalConfig(mode="deduplicated"):
                return DeduplicatedSampler(self._proposal(), num_draws=size)
            case sampling_schema.ProposalConfig(mode="distinct"):
                return self._distinct(size)
            case sampling_schema.ProposalConfig(mode="independent"):
                return IndependentSampler(self._proposal(), num_sampled=size)
            case _:
                return WithReplacementSampler(self._proposal(), num_sampled=size)

    def _distinct(self, size: int) -> DistinctSampler:
        proposal = self._proposal()
        everything = torch.arange(proposal.num_candidates)
        available = int(torch.isfinite(proposal.log_probability(everything)).sum())
        if size > available // 2:
            raise ConfigError(
                f"sampler.mode=distinct draws until loss.num_sampled={size} items differ; it must "
                f"be at most half of the {available} items that can be drawn, {available // 2}."
            )
        return DistinctSampler(proposal, num_sampled=size)

    def _proposal(self) -> Proposal:
        match self._config.sampler:
            case sampling_schema.UniformConfig():
                return UniformProposal(self._dataset.num_items)
            case sampling_schema.LogUniformConfig():
                return LogUniformProposal(self._counts)
            case sampling_schema.PopularityConfig(alpha=alpha):
                return PopularityProposal(self._counts, alpha=alpha)
            case sampling_schema.LearnedUnigramConfig():
                return LearnedUnigramProposal(self._dataset.num_items)
        raise ConfigError(f"sampler is of no known kind: {type(self._config.sampler).__name__}.")

    def _bigram(self, unigram_share: float) -> BigramProposal:
        if self._dataset.clock == "none":
            raise ConfigError(
                "sampler=bigram needs an order of the events, and this dataset has none: give "
                "dataset.columns.timestamp, or choose another sampler."
            )
        previous, following = consecutive_pairs(
            self._dataset.train, clock=self._dataset.clock, ties=self._config.history.ties
        )
        return BigramProposal(self._counts, previous, following, unigram_share=unigram_share)

    def _popularity(self) -> Popularity:
        match self._config.popularity:
            case sampling_schema.StreamingRateConfig() as rate:
                gap = rate.initial_gap
                if gap is None:
                    gap = max(self._dataset.num_items / self._config.trainer.batch_size, 1.0)
                return StreamingPopularity(
                    self._hashing(rate), step_size=rate.step_size, initial_gap=gap
                )
            case sampling_schema.CountMinRateConfig() as rate:
                return CountMinPopularity(
                    self._hashing(rate),
                    initial_count=rate.initial_count,
                    num_candidates=self._dataset.num_items,
                )
            case _:
                return ExactPopularity(self._counts)

    def _hashing(
        self, rate: sampling_schema.StreamingRateConfig | sampling_schema.CountMinRateConfig
    ) -> SeededHashing:
        return SeededHashing(rate.num_tables, rate.num_buckets, self._config.seed)

    def _memory(self, popularity: Popularity) -> MemorySampler:
        memory = self._config.streams.memory
        return MemorySampler(
            popularity,
            size=memory.size,
            max_age=memory.max_age,
            embedding_dim=self._model.output_dim,
        )

    def _hard(self) -> RefreshedHardNegatives:
        hard, num_items = self._config.streams.hard, self._dataset.num_items
        if hard.num_top > num_items:
            raise ConfigError(
                f"streams.hard.num_top must be at most the number of items, {num_items}, "
                f"got {hard.num_top}."
            )
        settings = build_index_settings(self._config.index)
        return RefreshedHardNegatives(
            partial(encode_candidates, self._model, self._features, num_items),
            partial(FaissIndex.build, settings=settings),
            num_sampled=hard.num_sampled,
            num_top=hard.num_top,
            refresh_steps=hard.refresh_steps,
        )


def streams_of(loss: loss_schema.CorrectedLossConfig) -> list[str]:
    """Give the streams that a softmax over a sample is made of."""
    match loss:
        case loss_schema.MixedConfig(streams=streams):
            return streams
        case loss_schema.SampledSoftmaxConfig():
            return ["drawn"]
        case _:
            return ["in_batch"]


def searches_while_training(loss: loss_schema.LossConfig) -> bool:
    """Tell whether steps draw from what the index group's index finds."""
    return isinstance(loss, loss_schema.CorrectedLossConfig) and "hard" in streams_of(loss)


def num_sampled(loss: loss_schema.CorrectedLossConfig) -> int:
    """Give the draws of the stream `drawn`; 0 where there is none."""
    return loss.num_sampled if isinstance(loss, loss_schema.SampledSoftmaxConfig) else 0


def draws_by_query(sampler: sampling_schema.SamplerConfig) -> bool:
    """Tell whether each query has draws of its own."""
    match sampler:
        case sampling_schema.ProposalConfig(mode=mode):
            return mode == "per_query"
        case _:
            return True


def _softmax_loss(loss: loss_schema.CorrectedLossConfig) -> SampledLoss:
    masked = loss.mask_accidental_hits
    match loss.log_q:
        case "refined":
            return sampled_losses.refined_softmax
        case "none":
            return partial(sampled_losses.uncorrected_softmax, remove_accidental_hits=masked)
        case _:
            return partial(sampled_losses.standard_softmax, remove_accidental_hits=masked)


def _binary_loss(loss: loss_schema.BinaryLossConfig) -> SampledLoss:
    match loss:
        case loss_schema.NegativeSamplingConfig():
            return sampled_losses.negative_sampling
        case loss_schema.NoiseContrastiveConfig():
            return sampled_losses.noise_contrastive
        case loss_schema.SampledLogisticConfig():
            return sampled_losses.sampled_logistic
        case loss_schema.BprConfig():
            return sampled_losses.bpr
    raise ConfigError(f"loss is of no known kind: {type(loss).__name__}.")
