"""The scale of what stands behind the towers' numbers, against a slow ranking; ties, nobody."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recsys.data import FeatureSchema, PreparedDataset
from recsys.evaluation import EvaluationQueries, build_queries, embed_queries
from recsys.models import ModelSpec, TwoTower, build_two_tower
from recsys.training import Validator, validation
from recsys.training.ridge_scale import choose_ridge_scale, scale_behind

SCALES = [0.01, 1.0, 9.0]
DIM, WIDTH = 3, 7


def make_vectors(num: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(num, WIDTH)).astype(np.float32)


def make_model(dataset: PreparedDataset) -> TwoTower:
    """Make towers with a ridge part, all with random values."""
    generator = torch.manual_seed(0)
    nothing = FeatureSchema()
    model = build_two_tower(
        ModelSpec(embedding_dim=8, ridge_dim=16, ridge_scale=7.0, init_std=1.0),
        num_users=dataset.num_users,
        num_items=dataset.num_items,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
    )
    assert model.ridge is not None
    model.ridge.set_item_factors(torch.randn(dataset.num_items, 16, generator=generator))
    return model


def choose(dataset: PreparedDataset, scales: list[float], seed: int) -> float:
    users, items = make_vectors(len(dataset.users), seed), make_vectors(dataset.num_items, 100)
    return choose_ridge_scale(
        scales,
        build_queries(dataset, "validation"),
        embed=lambda block: users[block.user_rows],
        vectors=items,
        dim=DIM,
        exclude_seen=True,
    )


def slow_ndcg(dataset: PreparedDataset, scale: float, seed: int) -> float:
    """Rank the whole catalogue, of less than 100 items, for one user after the other."""
    users, items = make_vectors(len(dataset.users), seed), make_vectors(dataset.num_items, 100)
    values = []
    for user in np.unique(dataset.validation.users):
        scores = items[:, :DIM] @ users[user, :DIM] + scale * items[:, DIM:] @ users[user, DIM:]
        scores[dataset.train.items[dataset.train.users == user]] = -np.inf
        chosen = set(dataset.validation.items[dataset.validation.users == user].tolist())
        order = np.argsort(-scores).tolist()
        gain = sum(1 / np.log2(2 + order.index(item)) for item in chosen)
        values.append(gain / sum(1 / np.log2(2 + place) for place in range(len(chosen))))
    return float(np.mean(values))


def test_the_chosen_scale_ranks_best_in_a_slow_loop(dataset: PreparedDataset) -> None:
    found = set()
    for seed in range(8):
        slow = [slow_ndcg(dataset, scale, seed) for scale in SCALES]
        chosen = choose(dataset, SCALES, seed)
        assert slow[SCALES.index(chosen)] == max(slow)
        found.add(chosen)
    assert len(found) > 1


def test_of_equal_scales_the_first_is_taken(dataset: PreparedDataset) -> None:
    one = SCALES[1]
    close = [one, float(np.nextafter(one, 2)), float(np.nextafter(one, 0))]  # one in float32
    for scales in (close, close[::-1]):
        assert choose(dataset, scales, 0) == scales[0]


@pytest.mark.parametrize("shape", [(2, WIDTH), (2, 4, WIDTH)])
def test_numbers_behind_the_towers_are_multiplied(
    dataset: PreparedDataset, shape: tuple[int, ...]
) -> None:
    vectors = np.ones(shape, np.float32)
    scaled = scale_behind(lambda _: vectors, DIM, 2.5)(build_queries(dataset, "validation"))
    assert scaled.dtype == np.float32
    assert (scaled[..., :DIM] == 1).all()
    assert (scaled[..., DIM:] == 2.5).all()


def test_without_validation_no_scale_is_chosen_with_a_warning(
    dataset: PreparedDataset, make_run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = dataset.validation.take(np.zeros(0, dtype=np.int64))
    empty = replace(dataset, validation=nothing)
    validator = Validator(empty, k=5, max_users=None, seed=0, ridge_scales=SCALES)
    assert "the first model.ridge.scale is taken" in caplog.text
    caplog.clear()
    assert validator.measure(make_run().step.model) == {}
    with caplog.at_level(logging.WARNING):
        Validator(empty, k=5, max_users=None, seed=0, ridge_scales=[2.0])
    assert not caplog.messages


def test_a_validation_embeds_each_query_once(
    dataset: PreparedDataset, make_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the choosers the vectors are kept; the others are embedded for the recall alone."""
    monkeypatch.setattr(validation, "_USERS_THAT_CHOOSE", 11)
    model, asked = make_model(dataset), []

    def embed(model: TwoTower, queries: EvaluationQueries) -> NDArray[np.float32]:
        asked.append(queries.user_rows)
        return embed_queries(model, queries)

    monkeypatch.setattr(validation, "embed_queries", embed)
    found = Validator(dataset, k=5, max_users=None, seed=0, ridge_scales=SCALES).measure(model)
    users = np.unique(dataset.validation.users)
    assert len(asked[0]) == 11 < len(users)
    np.testing.assert_array_equal(np.sort(np.concatenate(asked)), users)
    alone = Validator(dataset, k=5, max_users=None, seed=0).measure(model)
    assert found == alone | {"ridge_scale": model.spec.ridge_scale}


def test_of_cold_items_no_scale_is_chosen(
    cold_dataset: PreparedDataset, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        validator = Validator(
            cold_dataset, k=5, max_users=None, seed=0, candidates="cold", ridge_scales=SCALES
        )
    assert "the ridge part knows nothing of cold items: its first scale is taken" in caplog.text
    model = make_model(cold_dataset)
    assert "ridge_scale" not in validator.measure(model)
    assert model.spec.ridge_scale == 7.0
