"""The bridge from settings to samplers and the popularity that they read."""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.config import schema_sampling as schema
from recsys.config.build_batches import positives_per_step
from recsys.config.build_index import settings_while_training
from recsys.config.schema_stages import TrainConfig
from recsys.data import FeatureTable, PreparedDataset, consecutive_pairs
from recsys.foundations import ConfigError
from recsys.index import build_main
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
    PerQuerySampler,
    Popularity,
    PopularityProposal,
    Proposal,
    Sampler,
    SeededHashing,
    StreamingPopularity,
    UniformProposal,
    WithReplacementSampler,
    sum_over_catalogue,
)
from recsys.training import RefreshedHardNegatives


class SamplingBuilder:
    """Builds what a run draws from.

    Args:
        config: The settings.
        dataset: Gives item features, counts and sequences.
    """

    def __init__(self, config: TrainConfig, dataset: PreparedDataset) -> None:
        self._config, self._dataset = config, dataset
        self._counts = dataset.items.counts[: dataset.num_items]

    def stream(
        self, name: str, num_sampled: int, popularity: Popularity, model: TwoTower
    ) -> Sampler:
        """Build one of the streams that a softmax over a sample is made of.

        Args:
            name: One of `schema_loss.STREAMS`.
            num_sampled: Draws of the stream `drawn`.
            popularity: Read by the streams of positives.
            model: Whose rankings the stream `hard` draws from, and whose vectors `memory` holds.

        Raises:
            ConfigError: The data cannot serve it.
        """
        match name:
            case "in_batch":
                size = self._config.streams.in_batch.size
                return InBatchSampler(popularity, max_columns=size)
            case "drawn":
                return self.drawn(num_sampled)
            case "memory":
                return self._memory(popularity, model)
            case "hard":
                return self._hard(model)
        raise ConfigError(f"loss.streams holds no known stream: {name}.")

    def drawn(self, size: int) -> Sampler:
        """Build the sampler group's choice.

        Raises:
            ConfigError: It is of no known kind, or the data cannot serve it.
        """
        match self._config.sampler:
            case schema.BigramConfig(unigram_share=share):
                return BigramSampler(self._bigram(share), num_sampled=size)
            case schema.ProposalConfig(mode="with_replacement"):
                return WithReplacementSampler(self.proposal(), num_sampled=size)
            case schema.ProposalConfig(mode="per_query"):
                return PerQuerySampler(self.proposal(), num_sampled=size)
            case schema.ProposalConfig(mode="deduplicated"):
                return DeduplicatedSampler(self.proposal(), num_draws=size)
            case schema.ProposalConfig(mode="distinct"):
                return self._distinct(size)
            case schema.ProposalConfig(mode="independent"):
                return IndependentSampler(self.proposal(), num_sampled=size)
        raise ConfigError(f"sampler is of no known kind: {type(self._config.sampler).__name__}.")

    def proposal(self) -> Proposal:
        """Build the distribution of the sampler group's choice.

        Raises:
            ConfigError: It has none that is the same for every query.
        """
        match self._config.sampler:
            case schema.UniformConfig():
                return UniformProposal(self._dataset.num_items)
            case schema.LogUniformConfig():
                return LogUniformProposal(self._counts)
            case schema.PopularityConfig(alpha=alpha):
                return PopularityProposal(self._counts, alpha=alpha)
            case schema.LearnedUnigramConfig():
                return LearnedUnigramProposal(self._dataset.num_items)
        raise ConfigError(f"sampler is of no known kind: {type(self._config.sampler).__name__}.")

    def popularity(self) -> Popularity:
        """Build the rate at which items come as positives.

        Raises:
            ConfigError: It is of no known kind.
        """
        match self._config.popularity:
            case schema.ExactRateConfig():
                return ExactPopularity(self._counts)
            case schema.StreamingRateConfig() as rate:
                gap = rate.initial_gap
                if gap is None:
                    positives = positives_per_step(self._config, self._dataset)
                    gap = max(self._dataset.num_items / positives, 1.0)
                return StreamingPopularity(
                    self._hashing(rate), step_size=rate.step_size, initial_gap=gap
                )
            case schema.CountMinRateConfig() as rate:
                return CountMinPopularity(
                    self._hashing(rate),
                    initial_count=rate.initial_count,
                    num_candidates=self._dataset.num_items,
                )
        kind = type(self._config.popularity).__name__
        raise ConfigError(f"popularity is of no known kind: {kind}.")

    def _hashing(
        self, rate: schema.StreamingRateConfig | schema.CountMinRateConfig
    ) -> SeededHashing:
        return SeededHashing(rate.num_tables, rate.num_buckets, self._config.seed)

    def _distinct(self, size: int) -> DistinctSampler:
        proposal = self.proposal()
        available = int(sum_over_catalogue(proposal, torch.isfinite))
        if size > available // 2:
            raise ConfigError(
                f"sampler.mode=distinct draws until loss.num_sampled={size} items differ; it must "
                f"be at most half of the {available} items that can be drawn, {available // 2}."
            )
        return DistinctSampler(proposal, num_sampled=size)

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

    def _memory(self, popularity: Popularity, model: TwoTower) -> MemorySampler:
        memory = self._config.streams.memory
        return MemorySampler(
            popularity,
            size=memory.size,
            max_age=memory.max_age,
            embedding_dim=model.training_dim,
        )

    def _hard(self, model: TwoTower) -> RefreshedHardNegatives:
        hard, num_items = self._config.streams.hard, self._dataset.num_items
        if hard.num_top > num_items:
            raise ConfigError(
                f"streams.hard.num_top must be at most the number of items, {num_items}, "
                f"got {hard.num_top}."
            )
        features = self._dataset.items.features.take(np.arange(num_items))
        settings = settings_while_training(self._config.index, num_items)
        return RefreshedHardNegatives(
            partial(_encode_with_towers, model, features, num_items),
            partial(build_main, settings=settings),
            num_sampled=hard.num_sampled,
            num_top=hard.num_top,
            refresh_steps=hard.refresh_steps,
        )


def _encode_with_towers(
    model: TwoTower, features: FeatureTable, num_items: int
) -> NDArray[np.float32]:
    """Embed the candidates as in training, which knows no ridge part."""
    vectors = encode_candidates(model, features, num_items)
    return np.ascontiguousarray(vectors[:, : model.training_dim])
