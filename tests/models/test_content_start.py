"""The content start: cosines of items by hand, what begins at zeros, lengths, refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recsys.data import FeatureSchema, FeatureSpec, FeatureTable
from recsys.foundations import ConfigError, Ragged, ShapeError
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    start_at_content,
)
from recsys.models.feature_encoder import BagEncoder, CategoryEncoder, NumberEncoder

NUM_ITEMS, NUM_TRAINED = 60, 50
NUM_TAGS, NUM_BRANDS, NUM_BUCKETS = 9, 6, 7  # rows of the tables, but for the text's empty one
SPECS = (
    FeatureSpec(name="tags", kind="multi", size=NUM_TAGS),
    FeatureSpec(name="brand", kind="categorical", size=NUM_BRANDS),
    FeatureSpec(name="title", kind="text", size=NUM_BUCKETS),
    FeatureSpec(name="price", kind="numeric", size=1),
)
SPEC = ModelSpec(
    embedding_dim=32,
    user_tower=UserTowerSpec(history="none"),
    item_tower=ItemTowerSpec(use_id=False, feature_dropout=0.0),
)


def make_features(names: tuple[str, ...] = ("tags", "brand", "title")) -> FeatureTable:
    """Tag 8 and brand 5 stand in items without training events alone."""
    random = np.random.default_rng(0)
    tags = [random.choice(np.arange(8), random.integers(0, 5), replace=False) for _ in range(60)]
    tags[55] = np.array([8, 1])
    brands = random.integers(0, 5, NUM_ITEMS)
    brands[55:] = 5
    titles = [random.integers(0, NUM_BUCKETS, random.integers(1, 9)) for _ in range(NUM_ITEMS)]
    columns: dict[str, Any] = {
        "tags": as_ragged(tags),
        "brand": brands.astype(np.int32),
        "title": as_ragged(titles),
        "price": random.standard_normal(NUM_ITEMS).astype(np.float32),
    }
    specs = tuple(spec for spec in SPECS if spec.name in names)
    return FeatureTable(FeatureSchema(specs), {name: columns[name] for name in names}, NUM_ITEMS)


def as_ragged(lists: list[NDArray[np.int64]]) -> Ragged:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    return Ragged(offsets, np.concatenate(lists).astype(np.int32))


def make_model(features: FeatureTable, spec: ModelSpec = SPEC) -> TwoTower:
    torch.manual_seed(0)
    counts = np.ones(NUM_ITEMS, np.int64)
    counts[NUM_TRAINED:] = 0
    return build_two_tower(
        spec,
        num_users=2,
        num_items=NUM_ITEMS,
        user_schema=FeatureSchema(),
        item_schema=features.schema,
        context_schema=FeatureSchema(),
        item_counts=counts,
        sparse=False,
    ).eval()


def item_sums(model: TwoTower, features: FeatureTable) -> NDArray[np.float64]:
    """Embed the items, with zeros in the place of unknown and missing values."""
    for name, table in tables_of(model).items():
        table.data[NUM_BUCKETS if name == "title" else 0] = 0
    vectors = model.embed_candidates(np.arange(NUM_ITEMS), features)
    return vectors.detach().double().numpy()


def tf_idf(features: FeatureTable) -> NDArray[np.float64]:
    """Give the weights of all items by loops over items and values: [NUM_ITEMS, V]."""
    blocks = []
    for spec in features.schema:
        column = features.columns[spec.name]
        lists = [np.atleast_1d(column[item]) for item in range(NUM_ITEMS)]
        counts = np.zeros((NUM_ITEMS, spec.size))
        for item, values in enumerate(lists):
            for value in values:
                if value > 0 or spec.kind == "text":
                    counts[item, value] += 1
        trained = [len(values) for values in lists[:NUM_TRAINED] if len(values)]
        holders = (counts[:NUM_TRAINED] > 0).sum(axis=0)
        idf = np.where(holders > 0, np.log(NUM_TRAINED / np.maximum(holders, 1)), 0)
        lengths = np.array([max(len(values), 1) for values in lists])
        blocks.append(counts / lengths[:, None] * np.mean(trained) * idf)
    return np.concatenate(blocks, axis=1)


def tables_of(model: TwoTower) -> dict[str, torch.Tensor]:
    encoder = model.item_tower.features
    return {
        name: one.table.weight
        for name, one in zip(encoder.names, encoder.encoders, strict=True)
        if isinstance(one, BagEncoder | CategoryEncoder)
    }


@pytest.mark.parametrize("names", [("tags",), ("brand",), ("title",), ("tags", "brand", "title")])
def test_inner_products_of_items_are_those_of_their_tf_idf_vectors(names: tuple[str, ...]) -> None:
    features = make_features(names)
    model = make_model(features)
    start_at_content(model, features)
    sums = item_sums(model, features)[:, : rank_of(features)]  # the others hold random values
    weights = tf_idf(features)
    expected, found = weights @ weights.T, sums @ sums.T
    scale = np.trace(found) / np.trace(expected)
    np.testing.assert_allclose(found / scale, expected, atol=1e-5 * expected.max())


def rank_of(features: FeatureTable) -> int:
    return int(np.linalg.matrix_rank(tf_idf(features)[:NUM_TRAINED]))


def test_fewer_columns_than_the_rank_hold_the_leading_directions() -> None:
    features = make_features()
    model = make_model(features, replace(SPEC, embedding_dim=5))
    start_at_content(model, features)
    sums, weights = item_sums(model, features), tf_idf(features)
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    rows = (weights / np.where(lengths > 0, lengths, 1))[:NUM_TRAINED]
    leading = np.linalg.svd(rows)[2][:5].T
    expected, found = weights @ leading @ leading.T @ weights.T, sums @ sums.T
    scale = np.trace(found) / np.trace(expected)
    np.testing.assert_allclose(found / scale, expected, atol=1e-5 * expected.max())


def test_values_of_no_training_item_begin_at_zeros_and_missing_ones_near_them() -> None:
    features = make_features()
    model, untouched = make_model(features), make_model(features)
    start_at_content(model, features)
    tables, before = tables_of(model), tables_of(untouched)
    assert len(tables["title"]) == NUM_BUCKETS + 1
    for name, missing in (("tags", 0), ("brand", 0), ("title", NUM_BUCKETS)):
        kept, drawn = tables[name][missing].detach(), before[name][missing].detach()
        np.testing.assert_allclose(kept, drawn / 10, rtol=1e-6)
    zeros = {name: (table == 0).all(dim=1).nonzero().flatten() for name, table in tables.items()}
    assert zeros["tags"].tolist() == [8]
    assert zeros["brand"].tolist() == [5]
    assert zeros["title"].tolist() == []


def test_sums_of_features_are_as_long_as_at_random_values() -> None:
    features = make_features()
    spec = replace(SPEC, embedding_dim=16, init_std=0.3)
    model = make_model(features, spec)
    start_at_content(model, features)
    found = np.square(item_sums(model, features)[:NUM_TRAINED]).sum(axis=1).mean()
    # Each known value adds 16 times 0.3 squared, times its squared share of the list.
    squares = np.zeros(NUM_TRAINED)
    for item in range(NUM_TRAINED):
        tags, title = features.columns["tags"][item], features.columns["title"][item]
        squares[item] += (tags > 0).sum() / max(len(tags), 1) ** 2
        squares[item] += features.columns["brand"][item] > 0
        squares[item] += np.square(np.bincount(title) / len(title)).sum()
    assert found == pytest.approx(16 * 0.3**2 * squares.mean(), rel=1e-5)


def test_columns_beyond_the_rank_are_small_and_numbers_keep_their_values() -> None:
    features = make_features(("brand", "price"))
    model, untouched = make_model(features), make_model(features)
    start_at_content(model, features)
    brand, before = tables_of(model)["brand"], tables_of(untouched)["brand"]
    rank = rank_of(make_features(("brand",)))
    assert rank == 4
    np.testing.assert_allclose(
        brand[1:5, rank:].detach(), before[1:5, rank:].detach() / 10, rtol=1e-6
    )
    price, before_price = (m.item_tower.features.encoders[1] for m in (model, untouched))
    assert isinstance(price, NumberEncoder)
    assert isinstance(before_price, NumberEncoder)
    assert torch.equal(price.direction, before_price.direction)


def test_features_that_the_tower_does_not_read_do_not_count() -> None:
    features = make_features()
    alone = replace(SPEC, item_tower=replace(SPEC.item_tower, features=("tags",)))
    model, expected = make_model(features, alone), make_model(make_features(("tags",)))
    start_at_content(model, features)
    start_at_content(expected, make_features(("tags",)))
    assert torch.equal(tables_of(model)["tags"], tables_of(expected)["tags"])


def test_the_start_is_the_same_each_time() -> None:
    features = make_features()
    models = [make_model(features, replace(SPEC, embedding_dim=4)) for _ in range(2)]
    for model in models:
        start_at_content(model, features)
    first, second = map(tables_of, models)
    for name, table in first.items():
        assert torch.equal(table, second[name])


def test_what_holds_no_content_is_refused() -> None:
    prices = make_features(("price",))
    with pytest.raises(
        ConfigError, match=r"needs an item feature .* the tower reads price \(numer"
    ):
        start_at_content(make_model(prices), prices)
    same = make_features(("brand",))
    same.columns["brand"][:] = 3  # type: ignore[index]
    with pytest.raises(ConfigError, match="there is none in brand"):
        start_at_content(make_model(same), same)
    features = make_features()
    with pytest.raises(ShapeError, match="must have 60 rows, got 9"):
        start_at_content(make_model(features), features.take(np.arange(9)))
