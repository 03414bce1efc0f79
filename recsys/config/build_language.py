"""The bridge from settings to the next-word experiment: the text, the models that learn it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from recsys.benchmark import (
    LanguageResult,
    NextWordData,
    measure_language,
    prepare_next_words,
    read_sentences,
)
from recsys.config.schema_language import LanguageBenchmarkConfig
from recsys.data import FeatureSchema, FeatureTable, consecutive_pairs
from recsys.foundations import derive_seed, make_generator
from recsys.losses import full_softmax_loss
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    PopularityProposal,
    WithReplacementSampler,
)
from recsys.training import (
    CatalogueObjective,
    ImportanceObjective,
    Learner,
    ModelStep,
    Objective,
    SampledObjective,
    SampleGrowth,
    build_optimizers,
    build_schedule,
    grow_each,
    grow_shared,
    sampled_losses,
)

_OPTIMIZER = "rowwise_adagrad"


def run_language(config: LanguageBenchmarkConfig, interactions: str, seed: int) -> LanguageResult:
    """Read the log, and train and score the estimators that are named."""
    data = prepare_next_words(
        read_sentences(Path(interactions)),
        validation_share=config.validation_share,
        test_share=config.test_share,
        min_count=config.min_count,
    )
    settings = {key: value for key, value in vars(config).items() if key != "interactions"}
    return measure_language(
        data,
        partial(build_learner, config, data, seed=seed),
        estimators=config.estimators,
        epochs=config.epochs,
        batch_size=config.batch_size,
        context=config.context,
        validation_examples=config.validation_examples,
        seed=seed,
        settings=settings | {"seed": seed},
    )


def build_learner(
    config: LanguageBenchmarkConfig, data: NextWordData, estimator: str, *, seed: int
) -> Learner:
    """Build a model, the same one for every estimator, and all that trains it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "language", "weights"))
        model = _build_model(config, data)
    step = ModelStep(
        model,
        _Objectives(config, data).build(estimator),
        FeatureTable.missing(FeatureSchema(()), int(data.train.events.users[-1]) + 1),
        make_generator(seed, "language", "draws"),
    )
    optimizers = build_optimizers(
        model,
        table_optimizer=_OPTIMIZER,
        learning_rate=config.learning_rate,
        dense_learning_rate=config.learning_rate,
        weight_decay=0.0,
        dense_weight_decay=0.0,
        initial_accumulator=config.initial_accumulator,
    )
    total_steps = config.epochs * -(-len(data.train.examples) // config.batch_size)
    schedule = build_schedule(
        "linear_warmup_decay",
        warmup_steps=min(round(config.warmup_share * total_steps), total_steps - 1),
        total_steps=total_steps,
    )
    return Learner(step, optimizers, schedule, gradient_clip=0.0)


def _build_model(config: LanguageBenchmarkConfig, data: NextWordData) -> TwoTower:
    """Build a tower of the context and a tower of words that begins as the unigram model."""
    nothing = FeatureSchema(())
    model = build_two_tower(
        ModelSpec(
            embedding_dim=config.embedding_dim,
            user_tower=UserTowerSpec(
                use_id=False,
                history="recency",
                history_length=config.context,
                decay=config.decay,
                exponent=config.exponent,
                history_dropout=0.0,
            ),
            item_tower=ItemTowerSpec(id_dropout=0.0),
            item_bias=True,
            init_std=config.init_std,
        ),
        num_users=1,
        num_items=data.num_rows,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
        sparse=True,
    )
    model.start_at_popularity(data.counts)
    return model


class _Objectives:
    """What the estimators minimise."""

    def __init__(self, config: LanguageBenchmarkConfig, data: NextWordData) -> None:
        self._config, self._data = config, data
        self._words = FeatureTable.missing(FeatureSchema(()), data.num_rows)
        # Q > 0 for every word, also for one that training never meets: half an example.
        self._counts = np.maximum(data.counts, 0.5)

    def build(self, name: str) -> Objective:
        config = self._config
        makers: dict[str, Callable[[], Objective]] = {
            "full_softmax": lambda: CatalogueObjective(full_softmax_loss, self._words),
            "unigram_fixed": lambda: self._unigram(config.num_sampled, _fixed(config.num_sampled)),
            "unigram_small": lambda: self._unigram(
                config.small_sampled, _fixed(config.small_sampled)
            ),
            "unigram_adaptive": lambda: self._unigram(
                config.unigram_block,
                SampleGrowth(
                    min_ess=config.unigram_min_ess,
                    max_samples=config.unigram_max_samples,
                    ess_quantile=config.ess_quantile,
                ),
            ),
            "bigram_fixed": lambda: self._bigram(
                config.bigram_sampled, _fixed(config.bigram_sampled)
            ),
            "bigram_adaptive": lambda: self._bigram(
                config.bigram_block,
                SampleGrowth(
                    min_ess=config.bigram_min_ess,
                    max_samples=config.bigram_max_samples,
                    ess_quantile=0.0,
                ),
            ),
            "sampled_softmax": self._sampled_softmax,
        }
        return makers[name]()

    def _unigram(self, block: int, growth: SampleGrowth) -> Objective:
        proposal = PopularityProposal(self._counts, alpha=1.0)
        sampler = WithReplacementSampler(proposal, num_sampled=block)
        return ImportanceObjective(sampler, self._words, growth, grow_shared)

    def _bigram(self, block: int, growth: SampleGrowth) -> Objective:
        previous, following = consecutive_pairs(
            self._data.train.events, clock="order", ties="include"
        )
        share = self._config.unigram_share
        proposal = BigramProposal(self._counts, previous, following, unigram_share=share)
        sampler = BigramSampler(proposal, num_sampled=block)
        return ImportanceObjective(sampler, self._words, growth, grow_each)

    def _sampled_softmax(self) -> Objective:
        proposal = PopularityProposal(self._counts, alpha=1.0)
        sampler = WithReplacementSampler(proposal, num_sampled=self._config.num_sampled)
        loss = partial(sampled_losses.standard_softmax, remove_accidental_hits=True)
        return SampledObjective(sampler, self._words, loss)


def _fixed(size: int) -> SampleGrowth:
    """Say that one block of that size is enough."""
    return SampleGrowth(min_ess=0.0, max_samples=size, ess_quantile=0.0)
