"""Query vectors: what the model is given, however many queries come at once."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recsys.data import NO_TIME, FeatureSchema, FeatureTable
from recsys.evaluation import EvaluationQueries, embed_queries
from recsys.foundations import Ragged
from recsys.models import ModelSpec, QueryInputs, TwoTower, UserTowerSpec, build_two_tower

NUM_USERS, NUM_ITEMS, LENGTH = 40, 50, 70
SCHEMA = FeatureSchema()
TOWERS = {
    "recency": UserTowerSpec(history="recency", history_length=LENGTH),
    "gru": UserTowerSpec(history="gru", history_length=LENGTH, time_gaps=True),
    "transformer": UserTowerSpec(history="transformer", history_length=LENGTH, time_gaps=True),
    "attention": UserTowerSpec(history="attention", history_length=LENGTH, num_interests=3),
}


def make_model(tower: UserTowerSpec) -> TwoTower:
    torch.manual_seed(0)
    return build_two_tower(
        ModelSpec(embedding_dim=8, user_tower=tower, item_bias=True, init_std=0.5),
        num_users=NUM_USERS,
        num_items=NUM_ITEMS,
        user_schema=SCHEMA,
        item_schema=SCHEMA,
        context_schema=SCHEMA,
    )


def make_queries(num_queries: int, *, longest: int = 100) -> EvaluationQueries:
    """Make queries with histories of 0 to `longest` items, some longer than what is looked at."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, longest + 1, num_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    gaps = 10 ** rng.integers(0, 12, offsets[-1])
    nothing = FeatureTable.missing(SCHEMA, num_queries)
    return EvaluationQueries(
        user_rows=rng.integers(0, NUM_USERS, num_queries),
        histories=Ragged(offsets, rng.integers(0, NUM_ITEMS, offsets[-1])),
        seen=Ragged.empty(num_queries),
        truth=Ragged.empty(num_queries),
        chosen=Ragged.empty(num_queries),
        context=nothing,
        features=nothing,
        known=np.ones(num_queries, bool),
        history_times=Ragged(offsets, np.cumsum(gaps)),
    )


def slow_embed(model: TwoTower, queries: EvaluationQueries) -> NDArray[Any]:
    """Embed one query after another, as long as its history is; times go along."""
    vectors = []
    model.eval()
    for place in range(len(queries)):
        items = queries.histories[place][::-1][:LENGTH]
        times = np.full(len(items), NO_TIME)
        if queries.history_times is not None:
            times = queries.history_times[place][::-1][:LENGTH]
        inputs = QueryInputs(
            queries.user_rows[place : place + 1],
            items[None].astype(np.int64),
            queries.features.take(np.array([place])),
            queries.context.take(np.array([place])),
            np.array(times)[None],
        )
        with torch.no_grad():
            vectors.append(model.embed_queries(inputs).numpy()[0])
    return np.array(vectors)


@pytest.mark.parametrize("name", TOWERS)
def test_the_newest_items_and_their_times_are_read(name: str) -> None:
    model, queries = make_model(TOWERS[name]), make_queries(60)
    vectors = embed_queries(model, queries)
    assert vectors.dtype == np.float32
    assert vectors.shape == ((60, 3, 9) if name == "attention" else (60, 9))
    np.testing.assert_allclose(vectors, slow_embed(model, queries), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["gru", "transformer"])
def test_without_times_the_gaps_are_unknown(name: str) -> None:
    model, queries = make_model(TOWERS[name]), make_queries(60)
    untimed = dataclasses.replace(queries, history_times=None)
    vectors = embed_queries(model, untimed)
    np.testing.assert_allclose(vectors, slow_embed(model, untimed), rtol=0, atol=1e-5)
    differ = np.abs(vectors - embed_queries(model, queries)).max(axis=1) > 1e-3
    assert differ[queries.histories.lengths > 1].all()  # from two items on there is a gap


@pytest.mark.parametrize("name", TOWERS)
def test_does_not_depend_on_batches(name: str) -> None:
    model, queries = make_model(TOWERS[name]), make_queries(600)
    whole = embed_queries(model, queries)
    for step in (1, 7, 512):
        count = 40 if step == 1 else 600
        parts = [
            embed_queries(model, queries.slice(start, start + step))
            for start in range(0, count, step)
        ]
        assert np.array_equal(np.concatenate(parts), whole[:count])
    order = np.random.default_rng(1).permutation(600)
    assert np.array_equal(embed_queries(model, queries.take(order)), whole[order])


def test_nobody_has_no_vectors() -> None:
    nobody = make_queries(3).slice(0, 0)
    assert embed_queries(make_model(TOWERS["gru"]), nobody).shape == (0, 9)
    assert embed_queries(make_model(TOWERS["attention"]), nobody).shape == (0, 3, 9)


def test_no_more_histories_are_padded_at_once_than_are_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    widest = 0

    def watch(histories: Ragged, length: int) -> NDArray[np.int64]:
        nonlocal widest
        widest = max(widest, len(histories))
        return np.full((len(histories), length), -1)

    monkeypatch.setattr("recsys.evaluation.embed.pad_histories", watch)
    embed_queries(make_model(TOWERS["recency"]), make_queries(1300, longest=3))
    assert 0 < widest <= 512
