"""Of whom a model reads anything: exactly those whose vector differs from that of a stranger."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.data import FeatureSchema, FeatureSpec, FeatureTable
from recsys.evaluation import EvaluationQueries, embed_queries, known_to_model
from recsys.foundations import Ragged
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower

NUM_USERS, NUM_ITEMS, LENGTH = 4, 6, 3
COUNTS = np.array([3, 1, 2, 5, 0, 0])
USERS = FeatureSchema(
    (
        FeatureSpec(name="segment", kind="categorical", size=3),
        FeatureSpec(name="age", kind="numeric", size=1),
    )
)
ITEMS = FeatureSchema((FeatureSpec(name="colour", kind="categorical", size=3),))
COLOURS = np.array([1, 2, 0, 1, 2, 0], np.int32)  # of the cold items 4 and 5, one has a colour
NOBODY = UserTowerSpec(use_id=False, features=(), context=(), history_length=LENGTH)
MAKES: dict[str, dict[str, Any]] = {
    "history": {"user_tower": NOBODY},
    "features": {"user_tower": replace(NOBODY, history="none", features=("segment",))},
    "all features": {"user_tower": replace(NOBODY, features=None)},
    "ids": {"user_tower": replace(NOBODY, history="none", use_id=True)},
    "transformer": {"user_tower": replace(NOBODY, history="transformer")},
    "tower": {"user_tower": replace(NOBODY, history_table="tower")},
    "tower without ids": {
        "user_tower": replace(NOBODY, history_table="tower"),
        "item_tower": ItemTowerSpec(use_id=False),
    },
    "tower and ridge": {
        "user_tower": replace(NOBODY, history_table="tower"),
        "item_tower": ItemTowerSpec(use_id=False),
        "ridge_dim": 16,
    },
}


def make_model(make: str) -> TwoTower:
    torch.manual_seed(0)
    model = build_two_tower(
        ModelSpec(embedding_dim=4, init_std=1.0, **MAKES[make]),
        num_users=NUM_USERS,
        num_items=NUM_ITEMS,
        user_schema=USERS,
        item_schema=ITEMS,
        context_schema=FeatureSchema(),
        item_counts=COUNTS,
        item_features=FeatureTable(ITEMS, {"colour": COLOURS}, NUM_ITEMS),
    )
    if model.ridge is not None:
        factors = torch.randn(NUM_ITEMS, 16) * torch.from_numpy(COUNTS > 0)[:, None]
        model.ridge.set_item_factors(factors)
    return model


def make_queries(
    rows: list[int], histories: list[list[int]], segments: list[int], ages: list[float]
) -> EvaluationQueries:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in histories])]).astype(np.int64)
    size = len(rows)
    columns: dict[str, Any] = {
        "segment": np.array(segments, np.int32),
        "age": np.array(ages, np.float32),
    }
    return EvaluationQueries(
        user_rows=np.array(rows, np.int64),
        histories=Ragged(offsets, np.concatenate([*histories, []]).astype(np.int64)),
        seen=Ragged.empty(size),
        truth=Ragged.empty(size),
        chosen=Ragged.empty(size),
        context=FeatureTable(FeatureSchema(), {}, size),
        features=FeatureTable(USERS, columns, size),
        known=(np.array(rows) >= 0) & (np.array(rows) < NUM_USERS),
    )


users = st.lists(
    st.tuples(
        st.integers(-1, NUM_USERS + 1),
        st.lists(st.integers(0, NUM_ITEMS - 1), max_size=5),
        st.integers(0, 2),
        st.sampled_from([np.nan, 0.5]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("make", MAKES)
@given(users)
@settings(max_examples=30, deadline=None)
def test_a_user_is_known_where_the_vector_is_not_that_of_a_stranger(
    make: str, asked: list[tuple[int, list[int], int, float]]
) -> None:
    model = make_model(make)
    rows, histories, segments, ages = map(list, zip(*asked, strict=True))
    queries = make_queries(rows, histories, segments, ages)
    stranger = embed_queries(model, make_queries([-1], [[]], [0], [np.nan]))
    differs = (embed_queries(model, queries) != stranger).any(axis=1)
    assert known_to_model(model, queries).tolist() == differs.tolist()


def test_what_the_model_reads_decides_who_gets_popular_items() -> None:
    # A known user without history, a stranger with a segment, one with a cold item, one with none.
    queries = make_queries([1, -1, -1, -1], [[], [], [4], []], [0, 1, 0, 0], [np.nan] * 4)
    assert queries.nothing_known().tolist() == [False, False, False, True]
    wanted = {
        "history": [True, True, True, True],
        "features": [True, False, True, True],
        "ids": [False, True, True, True],
        "tower": [True, True, False, True],
    }
    for make, nothing in wanted.items():
        noted = queries.read_by(partial(known_to_model, make_model(make)))
        assert noted.nothing_known().tolist() == nothing, make
        assert noted.take(np.array([2, 0])).nothing_known().tolist() == [nothing[2], nothing[0]]
