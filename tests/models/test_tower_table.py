"""Histories read through the item tower: values, gradients, cold items, what is kept for search."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureSpec, FeatureTable
from recsys.foundations import ArgumentError, Ragged
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    QueryInputs,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    encode_candidates,
)
from recsys.models.feature_encoder import BagEncoder, NumberEncoder
from recsys.models.pooled_history import PooledHistory
from recsys.models.tower_table import TowerTable

NUM_ITEMS = 600  # more than one block
COLD = 598
NOTHING = FeatureSchema()
SCHEMA = FeatureSchema(
    (
        FeatureSpec(name="tags", kind="multi", size=9),
        FeatureSpec(name="price", kind="numeric", size=1),
    )
)
USERS = UserTowerSpec(
    use_id=False, history_table="tower", history_length=6, history_dropout=0.0, decay=0.5
)
ITEMS = ItemTowerSpec(use_id=False, feature_dropout=0.0, id_dropout=0.0)
SPEC = ModelSpec(embedding_dim=4, init_std=1.0, user_tower=USERS, item_tower=ITEMS)
ENCODERS: dict[str, dict[str, Any]] = {
    "recency": {},
    "gate": {"gate_dim": 3},
    "attention": {"history": "attention"},
    "interests": {"history": "attention", "num_interests": 2},
    "gru": {"history": "gru", "layer_dropout": 0.0},
    "transformer": {"history": "transformer", "layer_dropout": 0.0},
}
every_encoder = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


def make_features() -> FeatureTable:
    """Item n has the tags n mod 8 + 1 and, if it is odd, n mod 3 + 1; its price is n / 100."""
    rows = np.arange(NUM_ITEMS)
    tags = [[n % 8 + 1, n % 3 + 1] if n % 2 else [n % 8 + 1] for n in rows]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in tags])])
    columns: dict[str, Any] = {
        "tags": Ragged(offsets, np.concatenate(tags).astype(np.int32)),
        "price": (rows / 100).astype(np.float32),
    }
    return FeatureTable(SCHEMA, columns, NUM_ITEMS)


def make_model(spec: ModelSpec = SPEC, **changes: Any) -> TwoTower:
    torch.manual_seed(0)
    counts = np.ones(NUM_ITEMS, np.int64)
    counts[COLD:] = 0
    arguments: dict[str, Any] = {
        "num_users": 3,
        "num_items": NUM_ITEMS,
        "user_schema": NOTHING,
        "item_schema": SCHEMA,
        "context_schema": NOTHING,
        "item_counts": counts,
        "item_features": make_features(),
    }
    return build_two_tower(spec, **arguments | changes)


def with_user(**changes: Any) -> ModelSpec:
    return replace(SPEC, user_tower=replace(USERS, **changes))


def make_inputs(histories: list[list[int]] | NDArray[np.int64]) -> QueryInputs:
    nothing = FeatureTable.missing(NOTHING, len(histories))
    return QueryInputs(np.full(len(histories), -1), np.array(histories), nothing, nothing)


def some_histories(num: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(-1, NUM_ITEMS, (num, 6))


def encoders_of(model: TwoTower) -> tuple[BagEncoder, NumberEncoder]:
    tags, price = model.item_tower.features.encoders
    assert isinstance(tags, BagEncoder)
    assert isinstance(price, NumberEncoder)
    return tags, price


def by_hand(model: TwoTower, item: int) -> Tensor:
    """Sum the mean of an item's tags and its price along the learned direction."""
    tags, price = encoders_of(model)
    mine = [item % 8 + 1, item % 3 + 1] if item % 2 else [item % 8 + 1]
    of_tags = tags.table.weight[mine].mean(dim=0)
    return of_tags + item / 100 * price.direction


@pytest.mark.parametrize("training", [True, False])
def test_a_pooled_history_is_the_weighted_sum_of_what_the_item_tower_gives(training: bool) -> None:
    model = make_model().train(training)
    query = model.embed_queries(make_inputs([[7, -1, 12, 7]]))[0]
    weights = [1, 0.5, 0.25]
    expected = sum(w * by_hand(model, item) for w, item in zip(weights, [7, 12, 7], strict=True))
    assert_close(query, expected / sum(weights) ** 0.5)


def test_neither_bias_nor_ridge_enters_a_history() -> None:
    spec = replace(SPEC, item_bias=True, ridge_dim=16)
    model = make_model(spec).eval()
    with torch.no_grad():
        model.item_tower.bias.weight.fill_(3.0)  # type: ignore[union-attr]
    query = model.embed_queries(make_inputs([[7, 12]]))[0, :4]
    whole = by_hand(model, 7) + 0.5 * by_hand(model, 12)
    assert_close(query, whole / 1.5**0.5, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_with_normalisation_the_items_of_a_history_have_length_1(training: bool) -> None:
    model = make_model(replace(SPEC, normalize=True)).train(training)
    query = model.embed_queries(make_inputs([[7, 12]]))[0]
    seven, twelve = by_hand(model, 7), by_hand(model, 12)
    whole = seven / seven.norm() + 0.5 * twelve / twelve.norm()
    assert_close(query, whole / whole.norm(), atol=1e-5, rtol=1e-5)


@every_encoder
def test_the_gradient_of_a_history_reaches_the_features_of_its_items(
    encoder: dict[str, Any],
) -> None:
    model = make_model(with_user(**encoder))
    model.embed_queries(make_inputs([[16, -1, 8], [8, 24, 32]])).square().sum().backward()
    tags, price = encoders_of(model)
    assert tags.table.weight.grad is not None
    touched = tags.table.weight.grad.to_dense().any(dim=1).nonzero().flatten()
    assert touched.tolist() == [1]  # all four items are even multiples of 8
    assert price.direction.grad is not None
    assert price.direction.grad.any()


@pytest.mark.parametrize("gate_dim", [0, 3])
def test_gradients_are_those_of_a_table_of_the_towers_vectors(gate_dim: int) -> None:
    model = make_model(with_user(gate_dim=gate_dim))
    histories = torch.from_numpy(some_histories(5))
    rows = torch.arange(NUM_ITEMS)
    vectors = model.item_tower(rows, make_features())[0]

    class Plain:
        def bag(self, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
            parts = torch.tensor_split(vectors[rows] * weights[:, None], offsets[1:])
            return torch.stack([part.sum(dim=0) for part in parts])

    encoder = model.user_tower.history
    assert isinstance(encoder, PooledHistory)
    expected = encoder(histories, histories >= 0, Plain())
    factors = torch.randn_like(expected)
    tables = [p for name, p in model.named_parameters() if "item_tower" in name or "gate" in name]
    by_plain = torch.autograd.grad((expected * factors).sum(), tables, allow_unused=True)
    found = model.embed_queries(make_inputs(histories.numpy()))
    assert_close(found, expected, atol=1e-5, rtol=1e-5)
    by_view = torch.autograd.grad((found * factors).sum(), tables, allow_unused=True)
    for mine, other in zip(by_view, by_plain, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None and other is not None:
            assert_close(mine.to_dense(), other.to_dense(), atol=1e-4, rtol=1e-4)


@every_encoder
@pytest.mark.parametrize("training", [True, False])
def test_an_item_without_training_events_counts_in_a_history(
    encoder: dict[str, Any], training: bool
) -> None:
    model = make_model(with_user(**encoder)).train(training)
    empty, cold, other = model.embed_queries(make_inputs([[-1], [COLD], [COLD + 1]]))
    assert not torch.allclose(cold, empty, atol=1e-3)
    assert not torch.allclose(cold, other, atol=1e-3)


@pytest.mark.parametrize("training", [True, False])
def test_an_item_without_id_and_features_is_left_out_of_histories(training: bool) -> None:
    features = make_features()
    tags, prices = features.columns["tags"], features.columns["price"]
    assert isinstance(tags, Ragged)
    assert isinstance(prices, np.ndarray)
    tags.rows[tags.offsets[12] : tags.offsets[13]] = 0
    prices[12] = np.nan
    model = make_model(item_features=features).train(training)
    # Item 12 keeps its place, as padding does, but neither weight counts.
    without, padded = model.embed_queries(make_inputs([[7, 12, 9], [7, -1, 9]]))
    assert_close(without, padded)
    alone, empty = model.embed_queries(make_inputs([[12], [-1]]))
    assert_close(alone, empty)
    ids = make_model(
        replace(SPEC, item_tower=replace(ITEMS, use_id=True)),
        item_features=features,
        item_counts=np.where(np.arange(NUM_ITEMS) == 13, 0, 1),
    ).train(training)
    with_id, padded = ids.embed_queries(make_inputs([[7, 12, 9], [7, -1, 9]]))
    assert not torch.allclose(with_id, padded, atol=1e-3)
    prices[13] = np.nan
    tags.rows[tags.offsets[13] : tags.offsets[14]] = 0
    cold = make_model(
        replace(SPEC, item_tower=replace(ITEMS, use_id=True)),
        item_features=features,
        item_counts=np.where(np.arange(NUM_ITEMS) == 13, 0, 1),
    ).train(training)
    left_out, padded = cold.embed_queries(make_inputs([[7, 13], [7, -1]]))
    assert_close(left_out, padded)


def test_an_item_without_training_events_has_the_neutral_gate() -> None:
    model, plain = make_model(with_user(gate_dim=3)), make_model()
    plain.load_state_dict(model.state_dict(), strict=False)
    inputs = make_inputs([[COLD, COLD + 1]])
    assert_close(model.embed_queries(inputs), plain.embed_queries(inputs))
    assert not torch.allclose(
        model.embed_queries(make_inputs([[3, 4]])), plain.embed_queries(make_inputs([[3, 4]]))
    )


@every_encoder
def test_training_without_dropout_gives_what_search_gives(encoder: dict[str, Any]) -> None:
    model, inputs = make_model(with_user(**encoder)), make_inputs(some_histories(40))
    trained = model.embed_queries(inputs)
    assert_close(trained, model.eval().embed_queries(inputs), atol=1e-5, rtol=1e-4)


def test_kept_vectors_are_those_of_the_candidates_to_the_last_bit() -> None:
    model = make_model(replace(SPEC, item_tower=replace(ITEMS, hidden=(9,))))
    candidates = encode_candidates(model, make_features(), NUM_ITEMS)
    np.testing.assert_array_equal(model.eval().keep_history_vectors().numpy(), candidates)
    assert "history_vectors" not in model.state_dict()


def test_kept_vectors_are_made_once_and_anew_after_training_or_loading() -> None:
    model = make_model().eval()
    inputs = make_inputs([[7, 12]])
    before = model.embed_queries(inputs)
    kept = model.keep_history_vectors()
    assert model.eval().keep_history_vectors() is kept
    model.train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    model.eval()
    assert_close(model.embed_queries(inputs), 2 * before)
    model.load_state_dict(make_model().state_dict())
    assert_close(model.embed_queries(inputs), before)


def test_features_are_needed_and_vectors_are_kept_for_search_alone() -> None:
    model = make_model(item_features=None)
    for training in (True, False):
        with pytest.raises(ArgumentError, match=r"at least 600 rows .* got none"):
            model.train(training).embed_queries(make_inputs([[7]]))
    model.item_features = make_features().take(np.arange(9))
    with pytest.raises(ArgumentError, match="got 9"):
        model.embed_queries(make_inputs([[7]]))
    with pytest.raises(ArgumentError, match="must not be kept while"):
        make_model().keep_history_vectors()


def test_each_row_is_computed_once_and_only_when_it_is_looked_up() -> None:
    calls: list[list[int]] = []

    def embed(rows: Tensor) -> Tensor:
        calls.append(rows.tolist())
        return torch.stack([rows.float(), -rows.float()], dim=1)

    table = TowerTable(embed, dim=2, device=torch.device("cpu"))
    assert table(torch.tensor([], dtype=torch.int64)).shape == (0, 2)
    nothing = table.bag(torch.tensor([], dtype=torch.int64), torch.zeros(3).long(), torch.ones(0))
    assert_close(nothing, torch.zeros(3, 2))
    assert calls == []
    looked_up = table(torch.tensor([[5, 2], [5, 9]]))
    assert_close(looked_up[:, :, 0], torch.tensor([[5.0, 2.0], [5.0, 9.0]]))
    bags = table.bag(
        torch.tensor([9, 3, 2]), torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0])
    )
    assert_close(bags[:, 1], -torch.tensor([15.0, 0.0, 6.0]))
    assert sorted(map(sorted, calls)) == [[2, 5, 9], [3]]


def test_what_training_hides_of_an_item_is_drawn_once_a_step() -> None:
    items = replace(ITEMS, use_id=True, id_dropout=0.5, feature_dropout=0.5)
    model = make_model(replace(SPEC, item_tower=items))
    torch.manual_seed(1)
    queries = model.embed_queries(make_inputs([[n] for n in range(200)] * 2))
    assert_close(queries[:200], queries[200:])
    again = model.embed_queries(make_inputs([[n] for n in range(200)]))
    same = torch.isclose(again, queries[:200]).all(dim=1).float().mean()
    assert 0.05 < same < 0.4  # both hidden or not: 1 of 8, but for equal values


def test_an_item_that_history_dropout_takes_out_gets_no_gradient() -> None:
    spec = replace(SPEC, item_tower=replace(ITEMS, use_id=True))
    model = make_model(replace(spec, user_tower=replace(USERS, history_dropout=0.5)))
    histories = np.arange(6 * 50).reshape(50, 6)
    model.embed_queries(make_inputs(histories)).sum().backward()
    gradient = model.item_tower.ids.weight.grad.coalesce()  # type: ignore[union-attr]
    assert 100 < gradient.indices().shape[1] < 200  # of 300
