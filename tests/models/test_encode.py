"""Embeddings for search: the same bytes for every batch size."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recsys.data import FeatureSchema, FeatureSpec, FeatureTable
from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    QueryInputs,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    encode_candidates,
    encode_queries,
)

NUM_USERS, NUM_ITEMS = 40, 700
ENCODERS: dict[str, dict[str, Any]] = {
    "recency": {},
    "gate": {"gate_dim": 3},
    "tower": {"gate_dim": 3, "history_table": "tower"},
    "attention": {"history": "attention"},
    "interests": {"history": "attention", "num_interests": 3},
    "gru": {"history": "gru", "time_gaps": True},
    "transformer": {"history": "transformer", "num_layers": 2, "time_gaps": True},
    "absolute": {"history": "transformer", "positions": "absolute"},
}
every_encoder = pytest.mark.parametrize("name", list(ENCODERS))
SCHEMA = FeatureSchema(
    (
        FeatureSpec(name="kind", kind="categorical", size=5),
        FeatureSpec(name="tags", kind="multi", size=9),
        FeatureSpec(name="price", kind="numeric", size=1),
        FeatureSpec(name="image", kind="vector", size=7),
    )
)


def make_features(num_rows: int) -> FeatureTable:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], rng.integers(0, 6, num_rows).cumsum()])
    price = rng.normal(size=num_rows).astype(np.float32)
    price[::5] = np.nan
    columns: dict[str, Any] = {
        "kind": rng.integers(0, 5, num_rows).astype(np.int32),
        "tags": Ragged(offsets, rng.integers(0, 9, offsets[-1]).astype(np.int32)),
        "price": price,
        "image": rng.normal(size=(num_rows, 7)).astype(np.float32),
    }
    return FeatureTable(SCHEMA, columns, num_rows)


def make_model(history: dict[str, Any] | None = None, **changes: Any) -> TwoTower:
    torch.manual_seed(0)
    users: dict[str, Any] = {"history_length": 20, "combine": "concat", "hidden": (33,)}
    spec = ModelSpec(
        embedding_dim=14,
        user_tower=UserTowerSpec(**users | (history or {})),
        item_tower=ItemTowerSpec(hidden=(17,), norm="batch_norm", dropout=0.5),
        item_bias=True,
        **changes,
    )
    return build_two_tower(
        spec,
        num_users=NUM_USERS,
        num_items=NUM_ITEMS,
        user_schema=SCHEMA,
        item_schema=SCHEMA,
        context_schema=FeatureSchema(),
        item_features=make_features(NUM_ITEMS),
    )


def make_inputs(num_queries: int, *, history_length: int = 20) -> QueryInputs:
    rng = np.random.default_rng(1)
    users = rng.integers(-1, NUM_USERS + 5, num_queries)
    histories = rng.integers(-1, NUM_ITEMS, (num_queries, history_length))
    histories[
        np.arange(history_length) >= rng.integers(0, history_length + 1, num_queries)[:, None]
    ] = -1
    times = -rng.integers(0, 10**15, histories.shape).cumsum(axis=1)
    return QueryInputs(
        users,
        histories,
        make_features(num_queries),
        FeatureTable.missing(FeatureSchema(), num_queries),
        times,
    )


def encode_in_batches(model: TwoTower, inputs: QueryInputs, size: int) -> NDArray[np.float32]:
    rows = np.arange(len(inputs))
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return np.concatenate([encode_queries(model, inputs.take(batch)) for batch in batches])


@pytest.mark.parametrize("normalize", [False, True])
def test_queries_have_the_same_bytes_for_every_batch_size(normalize: bool) -> None:
    model, inputs = make_model(normalize=normalize), make_inputs(520)
    whole = encode_queries(model, inputs)
    assert whole.dtype == np.float32
    assert whole.shape == (520, 15)
    for size in (1, 7, 512):
        assert np.array_equal(encode_in_batches(model, inputs, size), whole), size


@every_encoder
def test_encoders_give_the_same_bytes_for_every_batch_size(name: str) -> None:
    length = 70  # blocks of several widths
    model = make_model(ENCODERS[name] | {"history_length": length})
    inputs = make_inputs(150, history_length=length)
    whole = encode_queries(model, inputs)
    assert whole.shape == (150, 3, 15) if name == "interests" else (150, 15)
    for size in (1, 7, 128):
        rows = inputs.take(np.arange(size if size > 7 else 40))
        assert np.array_equal(encode_in_batches(model, rows, size), whole[: len(rows)]), size


@every_encoder
def test_queries_have_the_same_bytes_in_any_order(name: str) -> None:
    model, inputs = make_model(ENCODERS[name]), make_inputs(150)
    order = np.random.default_rng(2).permutation(150)
    shuffled = encode_queries(model, inputs.take(order))
    assert np.array_equal(shuffled, encode_queries(model, inputs)[order])


@every_encoder
def test_queries_have_the_same_bytes_for_every_number_of_threads(name: str) -> None:
    model, inputs, before = make_model(ENCODERS[name]), make_inputs(150), torch.get_num_threads()
    encoded = []
    try:
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            encoded.append(encode_queries(model, inputs))
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(encoded[0], encoded[1])


@every_encoder
def test_a_shorter_block_of_histories_gives_the_same_bytes(name: str) -> None:
    model, inputs = make_model(ENCODERS[name]), make_inputs(5, history_length=3)
    padded = inputs.with_history_length(60)
    assert np.array_equal(encode_queries(model, inputs), encode_queries(model, padded))


def test_blocks_agree_with_the_model_itself_in_either_mode() -> None:
    model, inputs, features = make_model(), make_inputs(9), make_features(NUM_ITEMS + 3)
    queries, candidates = (
        encode_queries(model, inputs),
        encode_candidates(model, features, NUM_ITEMS),
    )
    assert model.training  # left as it was
    model.eval()
    expected = model.embed_queries(inputs).detach().numpy()
    np.testing.assert_allclose(queries, expected, rtol=0, atol=1e-6)
    rows = np.arange(NUM_ITEMS)
    expected = model.embed_candidates(rows, features.take(rows)).detach().numpy()
    np.testing.assert_allclose(candidates, expected, rtol=0, atol=1e-6)
    encode_candidates(model, features, NUM_ITEMS)
    assert not model.training


def test_no_rows_give_no_vectors() -> None:
    assert encode_queries(make_model(), make_inputs(0)).shape == (0, 15)


def test_too_few_features_and_an_empty_block_are_refused() -> None:
    with pytest.raises(ShapeError, match="`features` must have at least 700 rows, got 20"):
        encode_candidates(make_model(), make_features(20), NUM_ITEMS)
    with pytest.raises(ArgumentError, match="`block_size` must be above 0, got 0"):
        encode_queries(make_model(), make_inputs(1), block_size=0)
