"""The model as a whole: scores, biases, unknown ids, cold items, gradients, the saved state."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load, save
from torch.testing import assert_close

from recsys.data import NO_TIME, FeatureOptions, FeatureSchema, FeatureTable, HistoryPlaces
from recsys.foundations import ArgumentError, ConfigError, ShapeError
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    QueryInputs,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
)

NUM_USERS, NUM_ITEMS = 6, 9
NOTHING = FeatureSchema()
# Nothing is dropped at random, so that training gives what search gives.
STEADY_USERS = UserTowerSpec(id_dropout=0.0, feature_dropout=0.0, history_dropout=0.0)
STEADY_ITEMS = ItemTowerSpec(id_dropout=0.0, feature_dropout=0.0)
STEADY = ModelSpec(embedding_dim=4, user_tower=STEADY_USERS, item_tower=STEADY_ITEMS)


def make_features(num_rows: int = NUM_ITEMS) -> FeatureTable:
    table = pa.table(
        {
            "genre": [["a", "b"], [], ["c"]] * num_rows,
            "title": ["one two", "", "two"] * num_rows,
            "price": [1.0, None, 2.0] * num_rows,
        }
    ).slice(0, num_rows)
    kinds = {"genre": "multi", "title": "text", "price": "numeric"}
    options = {name: FeatureOptions(kind=kind, num_buckets=8) for name, kind in kinds.items()}
    return FeatureSchema.fit(table, options).encode(table)


def make_model(spec: ModelSpec = STEADY, *, seed: int = 0, **changes: Any) -> TwoTower:
    torch.manual_seed(seed)
    arguments: dict[str, Any] = {"num_users": NUM_USERS, "num_items": NUM_ITEMS}
    arguments |= dict.fromkeys(("user_schema", "item_schema", "context_schema"), NOTHING)
    return build_two_tower(spec, **arguments | changes)


def make_inputs(*, users: tuple[int, ...] = (0, 5, -1, 6), features: Any = None) -> QueryInputs:
    rng = np.random.default_rng(0)
    histories = rng.integers(-1, NUM_ITEMS, (len(users), 3))
    nothing = FeatureTable.missing(NOTHING, len(users))
    known = nothing if features is None else features.take(np.arange(len(users)))
    return QueryInputs(np.array(users), histories, known, nothing)


def no_features(num_rows: int) -> FeatureTable:
    return FeatureTable.missing(NOTHING, num_rows)


def test_ids_only_are_the_rows_of_their_tables() -> None:
    model = make_model(replace(STEADY, user_tower=replace(STEADY_USERS, history="none")))
    tables = dict(model.tables())
    assert list(tables) == ["user_tower.ids.weight", "item_tower.ids.weight"]
    queries = model.embed_queries(make_inputs(users=(0, 5)))
    assert_close(queries, tables["user_tower.ids.weight"][[0, 5]])
    candidates = model.embed_candidates(np.array([8, 1]), no_features(2))
    assert_close(candidates, tables["item_tower.ids.weight"][[8, 1]])


@pytest.mark.parametrize("num_pieces", [1, 2])
def test_concatenated_pieces_go_through_one_linear_layer_however_many_they_are(
    num_pieces: int,
) -> None:
    tower = replace(STEADY_ITEMS, combine="concat")
    features = make_features()
    schema = FeatureSchema(features.schema.specs[:1] if num_pieces == 2 else ())
    model = make_model(replace(STEADY, item_tower=tower), item_schema=schema)
    values, rows = model.item_tower.state_dict(), np.array([0, 2])
    pieces = [dict(model.tables())["item_tower.ids.weight"][rows]]
    pieces += model.item_tower.features(features.take(rows), model.device)
    assert len(pieces) == num_pieces
    weight, bias = values["combine.layers.0.weight"], values["combine.layers.0.bias"]
    expected = torch.cat(pieces, dim=1) @ weight.T + bias
    assert_close(model.embed_candidates(rows, features.take(rows)), expected)


def test_all_unknown_ids_share_one_vector() -> None:
    model = make_model(replace(STEADY, user_tower=replace(STEADY_USERS, history="none")))
    queries = model.embed_queries(make_inputs(users=(-1, NUM_USERS, 999, 0)))
    assert_close(queries[:2], queries[1:3])
    assert not torch.allclose(queries[0], queries[3])
    candidates = model.embed_candidates(torch.tensor([-1, NUM_ITEMS, 0]), no_features(3))
    assert_close(candidates[0], candidates[1])
    assert not torch.allclose(candidates[0], candidates[2])


def test_the_id_and_the_history_are_summed() -> None:
    model = make_model()
    tables = dict(model.tables())
    inputs = QueryInputs(np.array([3]), np.array([[7, 2]]), no_features(1), no_features(1))
    items = tables["user_tower.history_table.weight"]
    pooled = (items[7] + 0.9 * items[2]) / 1.9**0.5
    expected = tables["user_tower.ids.weight"][3] + pooled
    assert_close(model.embed_queries(inputs)[0], expected)


def test_a_shared_history_table_is_the_item_towers() -> None:
    spec = replace(STEADY, user_tower=replace(STEADY_USERS, use_id=False, history_table="shared"))
    model = make_model(spec)
    assert list(dict(model.tables())) == ["item_tower.ids.weight"]
    inputs = QueryInputs(np.array([3]), np.array([[7]]), no_features(1), no_features(1))
    item = model.embed_candidates(np.array([7]), no_features(1))
    assert_close(model.embed_queries(inputs), item)


def test_the_score_is_the_cosine_plus_the_bias() -> None:
    model = make_model(replace(STEADY, normalize=True, item_bias=True))
    assert model.output_dim == 5
    with torch.no_grad():
        dict(model.tables())["item_tower.bias.weight"].copy_(torch.arange(10.0)[:, None])
    queries = model.embed_queries(make_inputs())
    candidates = model.embed_candidates(np.array([4, 0, -1]), no_features(3))
    cosines = torch.nn.functional.cosine_similarity(
        queries[:, None, :4], candidates[None, :, :4], dim=2
    )
    biases = torch.tensor([4.0, 0.0, 9.0])  # the last row is the unknown item's
    assert_close(queries @ candidates.T, cosines + biases)
    assert_close(queries[:, :4].norm(dim=1), torch.ones(4))


def test_scaling_a_vector_of_zeros_gives_zeros_and_a_finite_gradient() -> None:
    spec = replace(STEADY, normalize=True, user_tower=replace(STEADY_USERS, history="none"))
    model = make_model(spec, sparse=False)
    table = dict(model.tables())["user_tower.ids.weight"]
    with torch.no_grad():
        table.zero_()
    queries = model.embed_queries(make_inputs())
    assert_close(queries, torch.zeros(4, 4))
    torch.autograd.backward(queries.sum())
    assert table.grad is not None
    assert table.grad.isfinite().all()


def test_items_without_training_events_have_features_but_no_vector_of_their_own() -> None:
    counts = np.array([0, 0, 3, 1, 1, 1, 1, 1, 0])
    features = make_features()
    model = make_model(item_schema=features.schema, item_counts=counts)
    embedded = model.embed_candidates(np.array([0, 8, 0]), features.take(np.array([2, 2, 0])))
    assert_close(embedded[0], embedded[1])  # two cold items with the same features
    assert not torch.allclose(embedded[0], embedded[2])

    def embed_history(*items: int) -> torch.Tensor:
        histories = np.array([[*items]])
        return model.embed_queries(
            QueryInputs(np.array([0]), histories, no_features(1), no_features(1))
        )

    assert_close(embed_history(0, -1), embed_history(-1, -1))
    assert not torch.allclose(embed_history(2, -1), embed_history(-1, -1))


@pytest.mark.parametrize("combine", ["sum", "concat"])
@pytest.mark.parametrize("hidden", [(), (5,)])
@pytest.mark.parametrize("history_table", ["own", "shared"])
@pytest.mark.parametrize("history", ["recency", "attention", "gru", "transformer"])
def test_every_parameter_gets_a_gradient_and_tables_a_sparse_one(
    combine: str, hidden: tuple[int, ...], history_table: str, history: str
) -> None:
    torch.manual_seed(0)
    parts: dict[str, Any] = {"combine": combine, "hidden": hidden, "norm": "layer_norm"}
    spec = ModelSpec(
        embedding_dim=4,
        user_tower=UserTowerSpec(
            history=history, history_table=history_table, history_dropout=0.1, **parts
        ),
        item_tower=ItemTowerSpec(**parts),
        normalize=True,
        item_bias=True,
        temperature=0.1,
        learn_temperature=True,
    )
    features = make_features()
    names = "user_schema", "item_schema", "context_schema"
    schemas: dict[str, Any] = dict.fromkeys(names, features.schema)
    model = make_model(spec, **schemas)
    inputs = replace(make_inputs(features=features), context=features.take(np.arange(4)))
    empty = replace(inputs, histories=np.full((4, 3), -1))
    queries = torch.cat([model.embed_queries(inputs), model.embed_queries(empty)])
    candidates = model.embed_candidates(np.arange(NUM_ITEMS), features)
    logits = queries @ candidates.T / model.temperature()
    torch.autograd.backward(logits.logsumexp(dim=1).sum())
    tables = dict(model.tables())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.is_sparse == (name in tables), name
        assert parameter.grad.to_dense().isfinite().all(), name


def test_dense_gradients_equal_sparse_ones() -> None:
    gradients = []
    for sparse in (True, False):
        model = make_model(sparse=sparse)
        torch.autograd.backward(model.embed_queries(make_inputs()).square().sum())
        gradients.append(
            {n: p.grad.to_dense() for n, p in model.named_parameters() if p.grad is not None}
        )
    assert_close(gradients[0], gradients[1])


def test_the_saved_state_gives_back_the_same_model() -> None:
    counts = np.array([0, 0, 3, 1, 1, 1, 1, 1, 0])
    model = make_model(item_counts=counts).eval()
    other = make_model(ModelSpec.from_json(STEADY.to_json()), seed=1, sparse=False).eval()
    other.load_state_dict(load(save(model.state_dict())))
    rows, inputs = np.arange(-1, NUM_ITEMS), make_inputs()
    assert torch.equal(other.embed_queries(inputs), model.embed_queries(inputs))
    embedded = model.embed_candidates(rows, no_features(10))
    assert torch.equal(other.embed_candidates(rows, no_features(10)), embedded)


def test_the_same_seed_gives_the_same_first_values() -> None:
    first, second = make_model(seed=3).state_dict(), make_model(seed=3).state_dict()
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_only_the_features_named_are_read() -> None:
    features = make_features()
    tower = replace(STEADY_USERS, use_id=False, history="none", features=("price",))
    model = make_model(replace(STEADY, user_tower=tower), user_schema=features.schema)
    assert list(dict(model.tables())) == ["item_tower.ids.weight"]  # a number has no table
    queries = model.embed_queries(make_inputs(features=features))
    assert_close(queries[0], queries[3])  # rows 0 and 3 have the same price
    assert not torch.allclose(queries[0], queries[1])


def test_a_feature_that_the_data_lacks_is_refused_by_name() -> None:
    spec = replace(STEADY, item_tower=replace(STEADY_ITEMS, features=("genre", "year")))
    words = "model.item_tower.features names 'year', but the data holds genre, title, price"
    with pytest.raises(ConfigError, match=words):
        make_model(spec, item_schema=make_features().schema)
    with pytest.raises(ConfigError, match="names 'genre', but the data holds none at all"):
        make_model(spec)


def test_a_tower_with_nothing_to_read_is_refused() -> None:
    empty_users = replace(STEADY, user_tower=replace(STEADY_USERS, use_id=False, history="none"))
    with pytest.raises(ConfigError, match=r"user tower has nothing to read.*user_tower.history"):
        make_model(empty_users)
    empty_items = replace(STEADY, item_tower=replace(STEADY_ITEMS, use_id=False))
    with pytest.raises(ConfigError, match=r"item tower has nothing to read.*item_tower.features"):
        make_model(empty_items)


def test_rows_that_are_no_items_are_refused_in_histories() -> None:
    nothing = no_features(1)
    with pytest.raises(ArgumentError, match="`histories` must hold rows below 9, got 9"):
        make_model().embed_queries(QueryInputs(np.array([0]), np.array([[9]]), nothing, nothing))


def test_candidates_and_features_of_different_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="`features` must have 2 rows, got 3"):
        make_model().embed_candidates(np.array([0, 1]), no_features(3))
    with pytest.raises(ShapeError, match="`item_counts` must have shape"):
        make_model(item_counts=np.ones(4, dtype=np.int64))


INTERESTS = replace(STEADY_USERS, history="attention", num_interests=3)


@pytest.mark.parametrize("combine", ["sum", "concat"])
@pytest.mark.parametrize("norm", ["layer_norm", "batch_norm"])
def test_each_interest_is_what_the_tower_makes_of_one_history_vector(
    combine: str, norm: str
) -> None:
    layers: dict[str, Any] = {"combine": combine, "hidden": (5,), "norm": norm}
    spec = replace(STEADY, normalize=True, item_bias=True)
    model = make_model(replace(spec, user_tower=replace(INTERESTS, **layers))).eval()
    assert model.num_interests == 3
    queries = model.embed_queries(make_inputs())
    assert queries.shape == (4, 3, 5)
    assert_close(queries[..., :4].norm(dim=2), torch.ones(4, 3))
    assert_close(queries[..., 4], torch.ones(4, 3))
    assert model.user_tower.history is not None
    read = model.user_tower.history.forward
    for interest in range(3):

        class OneInterest(torch.nn.Module):
            length, num_interests, is_causal, uses_times = 50, 1, False, False
            chosen = interest

            def forward(self, *args: Any, **more: Any) -> torch.Tensor:
                return read(*args, **more)[:, self.chosen]

        with_one = make_model(replace(spec, user_tower=replace(INTERESTS, **layers))).eval()
        with_one.load_state_dict(model.state_dict())
        with_one.user_tower.history = OneInterest()  # type: ignore[assignment]
        assert_close(with_one.embed_queries(make_inputs()), queries[:, interest])


def causal_model(**changes: Any) -> TwoTower:
    users = replace(STEADY_USERS, history="transformer", layer_dropout=0.0, **changes)
    return make_model(replace(STEADY, user_tower=users))


def places_of(rows: list[int], skipped: list[int]) -> HistoryPlaces:
    return HistoryPlaces(np.array(rows), np.array(skipped))


def test_a_query_at_a_place_is_the_one_with_its_own_shorter_history() -> None:
    model, histories = causal_model(), np.array([[1, 5, 3], [7, 2, -1]])
    users = np.array([4, 0, 4, 2])
    shared = QueryInputs(
        users,
        histories,
        no_features(4),
        no_features(4),
        places=places_of([0, 1, 0, 1], [1, 0, 3, 1]),
    )
    assert model.takes_places
    own = np.array([[5, 3, -1], [7, 2, -1], [-1, -1, -1], [2, -1, -1]])
    alone = QueryInputs(users, own, no_features(4), no_features(4))
    assert_close(model.embed_queries(shared), model.embed_queries(alone), rtol=0, atol=1e-5)


def test_times_are_read_by_a_model_of_time_gaps_alone() -> None:
    times = np.array([[9, 5, 1], [8, 2, NO_TIME]]) * np.array([[10**6], [1]])
    inputs = make_inputs(users=(1, 2))
    timed = replace(inputs, times=times)
    for time_gaps in (False, True):
        model = causal_model(time_gaps=time_gaps).eval()
        assert model.uses_times == time_gaps
        same = torch.allclose(model.embed_queries(inputs), model.embed_queries(timed))
        assert same == (not time_gaps)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (places_of([0, 4], [0, 0]), "`places.rows` must be at least 0 and below 2, got 0 to 4"),
        (
            places_of([0, 1], [0, -1]),
            "`places.skipped` must be at least 0 and below 4, got -1 to 0",
        ),
    ],
)
def test_places_outside_the_histories_are_refused(places: HistoryPlaces, words: str) -> None:
    inputs = replace(make_inputs(users=(1, 2)), places=places)
    with pytest.raises(ArgumentError, match=words):
        causal_model().embed_queries(inputs)


def test_places_are_refused_where_no_encoder_reads_in_order_or_histories_are_too_long() -> None:
    inputs = replace(make_inputs(users=(1, 2)), places=places_of([0, 1], [0, 1]))
    with pytest.raises(ArgumentError, match="`places` must be None: no gru and no transformer"):
        make_model().embed_queries(inputs)
    with pytest.raises(ShapeError, match="`histories` must have at most 2 columns"):
        causal_model(history_length=2).embed_queries(inputs)
