"""Each setting of loss, sampler, popularity, streams reaches what trains: against hand-built."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from recsys.config import TrainConfig, build, compose_config
from recsys.config.build_batches import build_batches
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_objective import build_objective
from recsys.data import FeatureTable, PreparedDataset, TrainingBatch, read_prepared
from recsys.foundations import make_generator
from recsys.index import ExactIndex
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
    ModelStep,
    MonteCarlo,
    Objective,
    ReferenceObjective,
    RefreshedHardNegatives,
    SampledObjective,
    SampleGrowth,
    grow_each,
    grow_shared,
    sampled_losses,
    smooth_catalogue_loss,
    smooth_sampled_loss,
)

NUM_USERS, NUM_ITEMS, BATCH_SIZE = 20, 15, 8


@dataclass(frozen=True)
class Parts:
    """What an objective is built from by hand."""

    dataset: PreparedDataset
    model: TwoTower
    counts: NDArray[np.int64]  # of the positives that an epoch's batches hold
    pairs: list[tuple[int, int]]  # the newest item of each positive's history, and the positive

    @property
    def features(self) -> FeatureTable:
        return self.dataset.items.features

    @property
    def popularity(self) -> ExactPopularity:
        return ExactPopularity(self.counts)

    def unigram(self, alpha: float) -> PopularityProposal:
        return PopularityProposal(self.counts, alpha=alpha)

    def bigram(self, share: float) -> BigramProposal:
        previous, following = np.array(self.pairs).T
        return BigramProposal(self.counts, previous, following, unigram_share=share)

    def sampled(
        self, sampler: Sampler, loss: Any = None, popularity: Popularity | None = None, **more: Any
    ) -> SampledObjective:
        loss = loss or partial(sampled_losses.standard_softmax, remove_accidental_hits=True)
        return SampledObjective(sampler, self.features, loss, popularity=popularity, **more)

    def learning(self, popularity: Popularity) -> SampledObjective:
        return self.sampled(InBatchSampler(popularity), popularity=popularity)

    def memory(self, *, size: int, max_age: int) -> SampledObjective:
        popularity, dim = self.popularity, self.model.output_dim
        memory = MemorySampler(popularity, size=size, max_age=max_age, embedding_dim=dim)
        mixed = MixedSampler([InBatchSampler(popularity), memory])
        return self.sampled(mixed, popularity=popularity)

    def hard(self, **numbers: int) -> SampledObjective:
        popularity = self.popularity
        embed = partial(encode_candidates, self.model, self.features, NUM_ITEMS)
        hard = RefreshedHardNegatives(embed, ExactIndex, **numbers)
        drawn = WithReplacementSampler(self.unigram(0.75), num_sampled=5)
        mixed = MixedSampler([InBatchSampler(popularity), drawn, hard])
        return self.sampled(mixed, popularity=popularity)

    def importance(
        self, sampler: Sampler, grow: Any, *, min_ess: float, max_samples: int, ess_quantile: float
    ) -> ImportanceObjective:
        growth = SampleGrowth(min_ess=min_ess, max_samples=max_samples, ess_quantile=ess_quantile)
        return ImportanceObjective(sampler, self.features, growth, grow)

    def reference(self, weigh: Any) -> ReferenceObjective:
        return ReferenceObjective(weigh, self.features)


Build = Callable[[Parts], Objective]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log in which two events of a user share each time."""
    rng = np.random.default_rng(0)
    items = np.minimum(rng.geometric(0.15, size=(NUM_USERS, 12)) - 1, NUM_ITEMS - 1)
    items[:NUM_ITEMS, 0] = np.arange(NUM_ITEMS)  # each item at least once
    log = [
        (f"u{user}", f"i{item}", 1_000_000_000 + step // 2)
        for user in range(NUM_USERS)
        for step, item in enumerate(items[user])
    ]
    path = tmp_path_factory.mktemp("log")
    pd.DataFrame(log, columns=["user_id", "item_id", "timestamp"]).to_parquet(path / "log.parquet")
    return path


def compose(folder: Path, settings: dict[str, Any]) -> TrainConfig:
    fixed = {
        "dataset": "table",
        "dataset.interactions": str(folder / "log.parquet"),
        "dataset.prepared_root": str(folder / "prepared"),
        "split": "leave_last_out",
        "index": "flat",
        "history.ties": "exclude",
        "model.embedding_dim": 4,
        "trainer.batch_size": BATCH_SIZE,
        "tracking": "none",
        "threads": 1,
    }
    return compose_config("train", TrainConfig, fixed | settings)


SAMPLED = {"loss": "sampled_softmax", "loss.num_sampled": 6}
IMPORTANCE = {"loss": "importance_sampling", "loss.num_sampled": 6, "loss.min_ess": 5}
IMPORTANCE |= {"loss.max_samples": 20}
STREAMING = {"loss": "in_batch", "popularity": "streaming", "popularity.num_buckets": 64}
CASES: dict[str, tuple[dict[str, Any], Build]] = {
    "full softmax": (
        {"loss": "full_softmax"},
        lambda parts: CatalogueObjective(full_softmax_loss, parts.features),
    ),
    "full softmax, smoothed": (
        {"loss": "full_softmax", "loss.label_smoothing": 0.3},
        lambda parts: CatalogueObjective(
            smooth_catalogue_loss(full_softmax_loss, 0.3), parts.features
        ),
    ),
    "full logistic": (
        {"loss": "full_logistic"},
        lambda parts: CatalogueObjective(full_logistic_loss, parts.features),
    ),
    "alpha": (
        SAMPLED | {"sampler.alpha": 0.3},
        lambda parts: parts.sampled(WithReplacementSampler(parts.unigram(0.3), num_sampled=6)),
    ),
    "uniform": (
        SAMPLED | {"sampler": "uniform"},
        lambda parts: parts.sampled(
            WithReplacementSampler(UniformProposal(NUM_ITEMS), num_sampled=6)
        ),
    ),
    "log-uniform": (
        SAMPLED | {"sampler": "log_uniform"},
        lambda parts: parts.sampled(
            WithReplacementSampler(LogUniformProposal(parts.counts), num_sampled=6)
        ),
    ),
    "learned": (
        SAMPLED | {"sampler": "learned_unigram"},
        lambda parts: parts.sampled(
            WithReplacementSampler(LearnedUnigramProposal(NUM_ITEMS), num_sampled=6)
        ),
    ),
    "per query": (
        SAMPLED | {"sampler.mode": "per_query"},
        lambda parts: parts.sampled(PerQuerySampler(parts.unigram(0.75), num_sampled=6)),
    ),
    "deduplicated": (
        SAMPLED | {"sampler.mode": "deduplicated"},
        lambda parts: parts.sampled(DeduplicatedSampler(parts.unigram(0.75), num_draws=6)),
    ),
    "distinct": (
        SAMPLED | {"sampler.mode": "distinct"},
        lambda parts: parts.sampled(DistinctSampler(parts.unigram(0.75), num_sampled=6)),
    ),
    "independent": (
        SAMPLED | {"sampler.mode": "independent"},
        lambda parts: parts.sampled(IndependentSampler(parts.unigram(0.75), num_sampled=6)),
    ),
    "bigram": (
        SAMPLED | {"sampler": "bigram", "sampler.unigram_share": 0.3},
        lambda parts: parts.sampled(BigramSampler(parts.bigram(0.3), num_sampled=6)),
    ),
    "hits kept": (
        {"loss": "in_batch", "loss.mask_accidental_hits": False},
        lambda parts: parts.sampled(
            InBatchSampler(parts.popularity),
            partial(sampled_losses.standard_softmax, remove_accidental_hits=False),
        ),
    ),
    "smoothed in a mixture": (
        {"loss": "mixed", "loss.num_sampled": 5, "loss.label_smoothing": 0.3},
        lambda parts: parts.sampled(
            MixedSampler(
                [
                    InBatchSampler(parts.popularity),
                    WithReplacementSampler(parts.unigram(0.75), num_sampled=5),
                ]
            ),
            smooth_sampled_loss(
                partial(sampled_losses.standard_softmax, remove_accidental_hits=True),
                0.3,
                NUM_ITEMS,
            ),
        ),
    ),
    "uncorrected with hits": (
        {"loss": "in_batch", "loss.mask_accidental_hits": False, "loss.log_q": "none"},
        lambda parts: parts.sampled(
            InBatchSampler(parts.popularity),
            partial(sampled_losses.uncorrected_softmax, remove_accidental_hits=False),
        ),
    ),
    "known positives": (
        {"loss": "in_batch", "loss.mask_known_positives": True},
        lambda parts: parts.sampled(
            InBatchSampler(parts.popularity),
            known_positives=KnownPositives(parts.dataset.train, NUM_ITEMS),
        ),
    ),
    "streaming": (
        STREAMING | {"popularity.num_tables": 2, "popularity.step_size": 0.3, "seed": 5},
        lambda parts: parts.learning(
            StreamingPopularity(
                SeededHashing(2, 64, 5), step_size=0.3, initial_gap=NUM_ITEMS / BATCH_SIZE
            )
        ),
    ),
    "streaming from a gap": (
        STREAMING | {"popularity.initial_gap": 3.5},
        lambda parts: parts.learning(
            StreamingPopularity(SeededHashing(3, 64, 0), step_size=0.05, initial_gap=3.5)
        ),
    ),
    "streaming, batches larger than the catalogue": (
        STREAMING | {"trainer.batch_size": 40},
        lambda parts: parts.learning(
            StreamingPopularity(SeededHashing(3, 64, 0), step_size=0.05, initial_gap=1.0)
        ),
    ),
    "count-min": (
        {"loss": "in_batch", "popularity": "count_min", "popularity.num_buckets": 16}
        | {"popularity.num_tables": 2, "popularity.initial_count": 0.5, "seed": 5},
        lambda parts: parts.learning(
            CountMinPopularity(SeededHashing(2, 16, 5), initial_count=0.5, num_candidates=NUM_ITEMS)
        ),
    ),
    "memory": (
        {"loss.streams": ["in_batch", "memory"]}
        | {"streams.memory.size": 20, "streams.memory.max_age": 2},
        lambda parts: parts.memory(size=20, max_age=2),
    ),
    "memory by size": (
        {"loss.streams": ["in_batch", "memory"]}
        | {"streams.memory.size": 11, "streams.memory.max_age": 9},
        lambda parts: parts.memory(size=11, max_age=9),
    ),
    "hard": (
        {"loss.streams": ["in_batch", "drawn", "hard"], "loss.num_sampled": 5}
        | {"streams.hard.num_sampled": 3, "streams.hard.num_top": 7}
        | {"streams.hard.refresh_steps": 2},
        lambda parts: parts.hard(num_sampled=3, num_top=7, refresh_steps=2),
    ),
    "importance": (
        IMPORTANCE | {"loss.ess_quantile": 0.5},
        lambda parts: parts.importance(
            WithReplacementSampler(parts.unigram(0.75), num_sampled=6),
            grow_shared,
            min_ess=5,
            max_samples=20,
            ess_quantile=0.5,
        ),
    ),
    "importance by query": (
        IMPORTANCE | {"sampler.mode": "per_query"},
        lambda parts: parts.importance(
            PerQuerySampler(parts.unigram(0.75), num_sampled=6),
            grow_each,
            min_ess=5,
            max_samples=20,
            ess_quantile=0,
        ),
    ),
    "importance from bigrams": (
        IMPORTANCE | {"sampler": "bigram"},
        lambda parts: parts.importance(
            BigramSampler(parts.bigram(0.5), num_sampled=6),
            grow_each,
            min_ess=5,
            max_samples=20,
            ess_quantile=0,
        ),
    ),
    "chain": (
        {"loss": "metropolis_hastings", "loss.num_sampled": 20, "loss.burn_in": 13},
        lambda parts: parts.reference(
            MetropolisHastings(parts.unigram(0.75), num_sampled=20, burn_in=13)
        ),
    ),
    "exact importance": (
        {"loss": "exact_importance", "loss.num_sampled": 7, "sampler.alpha": 1.0},
        lambda parts: parts.reference(ExactImportance(parts.unigram(1.0), num_sampled=7)),
    ),
    "Monte-Carlo": (
        {"loss": "monte_carlo", "loss.num_sampled": 7},
        lambda parts: parts.reference(MonteCarlo(num_sampled=7)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_setting_reaches_what_trains(folder: Path, name: str) -> None:
    settings, by_hand = CASES[name]
    config = compose(folder, settings)
    dataset = read_prepared(find_or_prepare(config))
    assert dataset.num_items == NUM_ITEMS
    torch.manual_seed(0)
    model = build.build_model(config, dataset).eval()  # so that nothing is dropped at random
    with torch.no_grad():
        for _, table in model.tables():
            table.normal_(0, 0.8)  # scores apart enough for samples to differ in worth
    batches = list(build_batches(config, dataset).epoch(0))
    found = build_objective(config, dataset, model)
    expected = by_hand(Parts(dataset, model, count_positives(batches), list_pairs(batches)))
    losses = []
    for objective in (found, expected):
        step = ModelStep(model, objective, dataset.users.features, make_generator(0, "draws"))
        losses.append([step(batch)[0].detach() for batch in batches[:4]])
    torch.testing.assert_close(torch.cat(losses[0]), torch.cat(losses[1]))
    assert found.statistics() == expected.statistics()
    states = found.state_dict(), expected.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def count_positives(batches: list[TrainingBatch]) -> NDArray[np.int64]:
    rows = np.concatenate([batch.positives for batch in batches])
    return np.bincount(rows, minlength=NUM_ITEMS)


def list_pairs(batches: list[TrainingBatch]) -> list[tuple[int, int]]:
    pairs = [
        (int(history[0]), int(item))
        for batch in batches
        for history, item in zip(batch.histories, batch.positives, strict=True)
        if history[0] >= 0
    ]
    assert pairs
    return pairs
