"""The scale of what stands behind the towers' numbers, against a slow ranking; ties, nobody."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation import RankedCandidates, build_queries
from recsys.index import ExactIndex
from recsys.training import Validator
from recsys.training.ridge_scale import choose_ridge_scale, scale_behind

SCALES = [0.01, 1.0, 9.0]
DIM, WIDTH = 3, 7


def make_vectors(num: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(num, WIDTH)).astype(np.float32)


def choose(dataset: PreparedDataset, scales: list[float], k: int, seed: int) -> float:
    users, items = make_vectors(len(dataset.users), seed), make_vectors(dataset.num_items, 100)
    return choose_ridge_scale(
        scales,
        build_queries(dataset, "validation"),
        embed=lambda block: users[block.user_rows],
        exact=ExactIndex(items),
        dim=DIM,
        k=k,
        dataset=dataset,
        ranked=RankedCandidates("all", None, dataset.num_items),
    )


def slow_recall(dataset: PreparedDataset, scale: float, k: int, seed: int) -> float:
    users, items = make_vectors(len(dataset.users), seed), make_vectors(dataset.num_items, 100)
    recalls = []
    for user in np.unique(dataset.validation.users):
        scores = items[:, :DIM] @ users[user, :DIM] + scale * items[:, DIM:] @ users[user, DIM:]
        scores[dataset.train.items[dataset.train.users == user]] = -np.inf
        chosen = set(dataset.validation.items[dataset.validation.users == user].tolist())
        recalls.append(len(chosen & set(np.argsort(-scores)[:k].tolist())) / len(chosen))
    return float(np.mean(recalls))


def test_the_chosen_scale_ranks_best_in_a_slow_loop(dataset: PreparedDataset) -> None:
    found = set()
    for seed in range(8):
        slow = [slow_recall(dataset, scale, 5, seed) for scale in SCALES]
        chosen = choose(dataset, SCALES, 5, seed)
        assert slow[SCALES.index(chosen)] == max(slow)
        found.add(chosen)
    assert len(found) > 1


def test_of_equal_scales_the_first_is_taken(dataset: PreparedDataset) -> None:
    for scales in (SCALES, SCALES[::-1]):
        assert choose(dataset, scales, dataset.num_items, 0) == scales[0]


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
