"""A small training run of parts made by hand, for tests of the loop and its checkpoints."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from recsys.data import (
    EventBatches,
    FeatureOptions,
    FeatureSchema,
    FeatureTable,
    FilterSettings,
    LogOptions,
    PreparedDataset,
    RawEntities,
    SplitSettings,
    TrainingBatch,
    interactions_from_table,
    make_synthetic,
    prepare_dataset,
    read_prepared,
)
from recsys.foundations import make_generator
from recsys.models import ItemTowerSpec, ModelSpec, UserTowerSpec, build_two_tower
from recsys.sampling import ExactPopularity, InBatchSampler
from recsys.tracking import NullTracker
from recsys.training import (
    CheckpointStore,
    FitSettings,
    ModelStep,
    Objective,
    SampledObjective,
    TrainingRun,
    Validator,
    build_optimizers,
    build_schedule,
    needs_sparse_gradients,
    sampled_losses,
)

MakeRun = Callable[..., TrainingRun]
SPEC = ModelSpec(
    embedding_dim=8,
    user_tower=UserTowerSpec(history_length=5),
    item_tower=ItemTowerSpec(),
)


def prepare(
    log: pa.Table, folder: Path, *, rule: str = "leave_last_out", items: pa.Table | None = None
) -> PreparedDataset:
    """Prepare a log without features, or with the categories of its items."""
    raw = interactions_from_table(log, LogOptions(timestamp_unit="us"), name="made", sources=[])
    path = prepare_dataset(
        raw,
        items=None if items is None else RawEntities(items, {}, []),
        item_features=None if items is None else {"category": FeatureOptions()},
        users=None,
        output=folder,
        filters=FilterSettings(),
        split=SplitSettings(rule=rule),
        seed=0,
        exclude_seen=True,
    )
    return read_prepared(path)


STANDARD = partial(sampled_losses.standard_softmax, remove_accidental_hits=True)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    """Prepare a log of 40 users with a planted structure."""
    made = make_synthetic(num_users=40, num_items=30, num_interactions=500, seed=0, num_clusters=3)
    return prepare(made.interactions, tmp_path_factory.mktemp("made") / "dataset")


@pytest.fixture(scope="session")
def cold_dataset(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    """Prepare the like with some items held out of training."""
    made = make_synthetic(num_users=40, num_items=30, num_interactions=500, seed=0, num_clusters=3)
    items = made.items.rename_columns({"item_id": "id"}).select(["id", "category"])
    folder = tmp_path_factory.mktemp("cold") / "dataset"
    return prepare(made.interactions, folder, rule="cold_items", items=items)


@pytest.fixture
def make_run(dataset: PreparedDataset, tmp_path: Path) -> MakeRun:
    """Give a function that builds a run; keys of its settings can be changed."""

    def make(
        *,
        optimizer: str = "rowwise_adagrad",
        dim: int = 8,
        data: PreparedDataset = dataset,
        tracker: Any = None,
        step: Callable[[ModelStep], Any] | None = None,
        batch_size: int = 64,
        **settings: Any,
    ) -> TrainingRun:
        torch.manual_seed(0)
        nothing = data.context_schema
        model = build_two_tower(
            ModelSpec(embedding_dim=dim, user_tower=SPEC.user_tower, item_tower=SPEC.item_tower),
            num_users=data.num_users,
            num_items=data.num_items,
            user_schema=nothing,
            item_schema=nothing,
            context_schema=nothing,
            sparse=needs_sparse_gradients(optimizer),
        )
        items = data.items.features.take(np.arange(data.num_items))
        sampler = InBatchSampler(ExactPopularity(data.items.counts[: data.num_items]))
        objective = SampledObjective(sampler, items, STANDARD)
        model_step = ModelStep(model, objective, data.users.features, make_generator(0, "draws"))
        defaults = {"epochs": 2, "patience": 0, "checkpoint_steps": 0, "gradient_clip": 0.0}
        return TrainingRun(
            step=model_step if step is None else step(model_step),
            batches=EventBatches(
                data.train,
                clock=data.clock,
                ties="include",
                history_length=5,
                batch_size=batch_size,
                drop_last=False,
                seed=0,
            ),
            optimizers=build_optimizers(
                model,
                table_optimizer=optimizer,
                learning_rate=0.05,
                dense_learning_rate=0.005,
                weight_decay=0.0,
                dense_weight_decay=0.0,
            ),
            schedule=build_schedule("constant", warmup_steps=0, total_steps=1),
            validator=Validator(data, k=5, max_users=None, seed=0),
            tracker=NullTracker() if tracker is None else tracker,
            store=CheckpointStore(tmp_path / "checkpoints", {"dim": dim}, data.fingerprint),
            settings=FitSettings(**defaults | settings),
        )

    return make


class UnitItems:
    """Items whose vectors are the unit vectors, so that a query's vector is its row of scores.

    The gradient of a softmax loss for a query then is its item weights less 1 at the positive, and
    every estimate of it can be read off.
    """

    temperature = 0.5

    def __init__(self, num_items: int = 5) -> None:
        self.num_items = num_items
        nothing = FeatureSchema()
        self.features = FeatureTable.missing(nothing, num_items)
        self.model = build_two_tower(
            ModelSpec(
                embedding_dim=num_items,
                user_tower=UserTowerSpec(history="none"),
                item_tower=ItemTowerSpec(id_dropout=0.0),
                temperature=self.temperature,
            ),
            num_users=6,
            num_items=num_items,
            user_schema=nothing,
            item_schema=nothing,
            context_schema=nothing,
            sparse=False,
        )
        [self.table] = [t for name, t in self.model.tables() if name.startswith("item_tower")]
        with torch.no_grad():
            self.table.copy_(torch.eye(num_items + 1, num_items))

    def queries(self, scores: Tensor) -> Tensor:
        """Give the queries that have these scores, divided by the temperature: [B, C]."""
        return (scores.float() * self.temperature).requires_grad_()

    def batch(
        self, positives: list[int], *, users: list[int] | None = None, last: list[int] | None = None
    ) -> TrainingBatch:
        """Make a batch; user 0 and no history unless they are given."""
        count = len(positives)
        return TrainingBatch(
            np.array(users or [0] * count, np.int64),
            np.array(positives, np.int64),
            np.array(last or [-1] * count, np.int64)[:, None],
            None,
            FeatureTable.missing(FeatureSchema(), count),
        )

    def losses(
        self, objective: Objective, scores: Tensor, batch: TrainingBatch, *, seed: int = 0
    ) -> Tensor:
        """Compute the losses: [B], without a gradient."""
        generator = make_generator(seed, "draws")
        return objective.losses(self.model, self.queries(scores), batch, generator).detach()

    def pull(
        self, objective: Objective, scores: Tensor, batch: TrainingBatch, *, seed: int = 0
    ) -> Tensor:
        """Give the gradient of each row's loss for its scores over the temperature: [B, C].

        Asserts that the gradient of the item vectors is of the same weights.
        """
        queries = self.queries(scores)
        generator = make_generator(seed, "draws")
        losses = objective.losses(self.model, queries, batch, generator)
        of_queries, of_items = torch.autograd.grad(losses.sum(), (queries, self.table))
        pull = of_queries * self.temperature
        expected = pull.T @ queries.detach() / self.temperature
        torch.testing.assert_close(of_items[:-1], expected, rtol=0, atol=1e-5)
        return pull

    def full_pull(self, scores: Tensor, positives: list[int]) -> Tensor:
        """Give the same of the full softmax."""
        weights = scores.double().softmax(dim=1)
        weights[range(len(positives)), positives] -= 1
        return weights.float()


@pytest.fixture
def unit_items() -> UnitItems:
    """Give five items whose vectors are the unit vectors."""
    return UnitItems()
