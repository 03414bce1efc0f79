"""The choice among settings of a ridge part, against a slow ranking; who is asked, ties, nobody."""

import logging
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from recsys.data import PreparedDataset
from recsys.foundations import make_generator
from recsys.models import ItemFactors
from recsys.training import RidgeJudge, RidgeSettings, choose_ridge

PAIRS = [(0.5, 0.5), (0.001, 0.01), (0.02, 0.1), (0.02, 0.001)]
LISTED = [RidgeSettings(dim, *pair) for dim in (16, 32) for pair in PAIRS]


def make_factors(dataset: PreparedDataset, dim: int) -> ItemFactors:
    events = dataset.train
    return ItemFactors(
        events.users,
        events.items,
        num_items=dataset.num_items,
        dim=dim,
        generator=make_generator(0, "ridge"),
    )


def choose(
    dataset: PreparedDataset, listed: list[RidgeSettings], judge: RidgeJudge
) -> RidgeSettings:
    return choose_ridge(partial(make_factors, dataset), listed, judge, 16)


def make_judge(dataset: PreparedDataset, **changes: Any) -> RidgeJudge:
    settings: dict[str, Any] = {"history_length": 100, "max_users": 1000, "seed": 0}
    return RidgeJudge(dataset, **{"candidates": "all"} | settings | changes)


def slow_ndcg(dataset: PreparedDataset, settings: RidgeSettings, length: int) -> float:
    """Rank the whole catalogue, of less than 100 items, for one user after the other."""
    (dim, regularization, unobserved), values = settings, []
    fitted = make_factors(dataset, dim).fit(
        regularization=regularization, unobserved=unobserved, iterations=4
    )
    factors = fitted.double().numpy()
    num_items = len(factors)
    for user in np.unique(dataset.validation.users):
        had = dataset.train.items[dataset.train.users == user]
        read = np.unique(had[-length:])
        frequency = len(read) + unobserved * num_items
        system = unobserved * factors.T @ factors + regularization * frequency * np.eye(dim)
        system += factors[read].T @ factors[read]
        scores = factors @ np.linalg.solve(system, factors[read].sum(axis=0))
        scores[had] = -np.inf
        chosen = set(dataset.validation.items[dataset.validation.users == user].tolist())
        order = np.argsort(-scores, kind="stable").tolist()
        gain = sum(1 / np.log2(2 + order.index(item)) for item in chosen)
        values.append(gain / sum(1 / np.log2(2 + place) for place in range(len(chosen))))
    return float(np.mean(values))


@pytest.mark.parametrize("length", [4, 100])
def test_the_chosen_settings_rank_best_in_a_slow_loop(
    dataset: PreparedDataset, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    slow = [slow_ndcg(dataset, settings, length) for settings in LISTED]
    assert len(set(slow)) > 4
    assert slow.count(max(slow)) == 1
    judge = make_judge(dataset, history_length=length)
    with caplog.at_level(logging.INFO):
        chosen = choose(dataset, LISTED, judge)
    assert chosen == LISTED[slow.index(max(slow))]
    text = f"dim {chosen[0]}, regularization {chosen[1]:g} and unobserved {chosen[2]:g} are the"
    best = f"best on validation, NDCG@30 {max(slow):.4f} alone"  # of 30 items
    assert f"of 8 settings {text} {best}" in caplog.text
    assert choose(dataset, LISTED[::-1], judge) == chosen


def test_of_equal_settings_the_first_are_taken(dataset: PreparedDataset) -> None:
    one = RidgeSettings(16, 0.02, 0.1)
    equal = [one, one._replace(unobserved=float(np.nextafter(0.1, 1)))]  # the same in float32
    for listed in (equal, equal[::-1]):
        assert choose(dataset, listed, make_judge(dataset)) == listed[0]


def test_for_cold_items_the_first_settings_are_taken_and_nothing_is_fitted(
    cold_dataset: PreparedDataset, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(dim: int) -> ItemFactors:
        raise AssertionError(dim)

    judge = make_judge(cold_dataset, candidates="cold")
    assert len(judge) > 0
    with caplog.at_level(logging.INFO):
        assert choose_ridge(refuse, LISTED, judge, 16) == LISTED[0]
    assert "the ridge part knows nothing of cold items" in caplog.text


def test_at_most_so_many_users_are_asked_drawn_by_seed(dataset: PreparedDataset) -> None:
    assert len(make_judge(dataset)) == len(np.unique(dataset.validation.users)) > 7
    assert len(make_judge(dataset, max_users=7)) == 7


def test_without_validation_the_first_settings_are_taken_with_a_warning(
    dataset: PreparedDataset, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = dataset.validation.take(np.zeros(0, dtype=np.int64))
    judge = make_judge(replace(dataset, validation=nothing))
    assert choose(dataset, LISTED, judge) == LISTED[0]
    assert "the ridge part takes the first of the listed settings" in caplog.text
