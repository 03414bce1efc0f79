"""The naive training: its rows against a loop, its loss against the towers it is compared with."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.benchmark import NaiveSettings, NaiveTraining, make_events
from recsys.benchmark.train_naive import HistoryRows
from recsys.data import EventBatches, Events, FeatureSchema, FeatureTable
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower
from recsys.sampling import PopularityProposal, WithReplacementSampler, draw
from recsys.training import ModelStep, SampledObjective, sampled_losses
from recsys.training.drawn_candidates import request_draw

NUM_ITEMS, DIM = 12, 4
SETTINGS = NaiveSettings(
    dim=DIM,
    length=3,
    decay=0.5,
    exponent=0.5,
    dropout=0.0,
    batch_size=16,
    num_sampled=9,
    alpha=0.75,
)


@pytest.fixture
def events() -> Events:
    rng = np.random.default_rng(0)
    return make_events(num_rows=200, num_users=20, num_items=NUM_ITEMS, rng=rng)


def count_items(events: Events) -> np.ndarray:
    return np.bincount(events.items, minlength=NUM_ITEMS) + 1


def test_a_row_is_the_item_after_the_newest_ones_before_it(events: Events) -> None:
    rows = HistoryRows(events, length=3, num_items=NUM_ITEMS)
    assert len(rows) == 200
    before: dict[int, list[int]] = {}
    for row, (user, item) in enumerate(zip(events.users, events.items, strict=True)):
        history, positive = rows[row]
        newest = before.setdefault(int(user), [])[::-1][:3]
        assert history.tolist() == newest + [NUM_ITEMS] * (3 - len(newest))
        assert positive == item
        before[int(user)].append(int(item))


def make_tower(counts: np.ndarray, naive: NaiveTraining) -> TwoTower:
    """Make the tower that it is compared with, of the same values."""
    nothing = FeatureSchema()
    model = build_two_tower(
        ModelSpec(
            embedding_dim=DIM,
            user_tower=UserTowerSpec(
                use_id=False,
                history="recency",
                history_length=SETTINGS.length,
                decay=SETTINGS.decay,
                exponent=SETTINGS.exponent,
                history_dropout=0.0,
            ),
            item_tower=ItemTowerSpec(id_dropout=0.0),
        ),
        num_users=20,
        num_items=NUM_ITEMS,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
        item_counts=counts,
        sparse=True,
    )
    tables = dict(model.tables())
    with torch.no_grad():
        for name, table in tables.items():
            own = naive.items if name.startswith("item_tower") else naive.histories
            table[:NUM_ITEMS] = own.weight[:NUM_ITEMS]
        assert model.user_tower.history is not None
        model.user_tower.history.empty.zero_()  # the naive one has no vector for no history
    return model


def test_its_loss_is_that_of_the_pooled_history_tower(events: Events) -> None:
    counts = count_items(events)
    naive = NaiveTraining(events, counts, SETTINGS)
    model = make_tower(counts, naive)
    sampler = WithReplacementSampler(PopularityProposal(counts, alpha=0.75), num_sampled=9)
    items = FeatureTable.missing(FeatureSchema(), NUM_ITEMS)
    users = FeatureTable.missing(FeatureSchema(), 20)

    def loss(terms: sampled_losses.SampledTerms) -> torch.Tensor:
        return sampled_losses.standard_softmax(terms, remove_accidental_hits=True)

    objective = SampledObjective(sampler, items, loss)
    source = EventBatches(
        events,
        clock="order",
        ties="include",
        history_length=3,
        batch_size=16,
        drop_last=True,
        seed=0,
    )
    batch = next(source.epoch(0))
    generator = torch.Generator().manual_seed(3)
    losses, _ = ModelStep(model, objective, users, generator)(batch)
    generator.manual_seed(3)
    drawn = draw(sampler, request_draw(batch, torch.zeros(16, DIM)), generator)
    histories = torch.from_numpy(np.where(batch.histories < 0, NUM_ITEMS, batch.histories))
    found = naive.loss(histories.long(), torch.from_numpy(batch.positives), drawn.rows)
    assert_close(losses.mean(), found)


def test_steps_bring_the_loss_down(events: Events) -> None:
    torch.manual_seed(0)
    naive = NaiveTraining(events, count_items(events), SETTINGS)
    rows = HistoryRows(events, length=3, num_items=NUM_ITEMS)
    histories, positives = zip(*(rows[row] for row in range(200)), strict=True)
    every = torch.stack(histories), torch.tensor(positives), torch.arange(NUM_ITEMS)
    before = naive.loss(*every).item()
    naive(60)  # five epochs of 13 batches, less some
    assert naive.loss(*every).item() < before - 0.02
