"""The choice among settings of a ridge part, against a slow ranking; who is asked, ties, nobody."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recsys.data import PreparedDataset
from recsys.foundations import make_generator
from recsys.models import ItemFactors
from recsys.training import RidgeJudge, choose_ridge

PAIRS = [(0.5, 0.5), (0.001, 0.01), (0.02, 0.1), (0.02, 0.001)]
K = 3


def make_factors(dataset: PreparedDataset) -> ItemFactors:
    events = dataset.train
    return ItemFactors(
        events.users,
        events.items,
        num_items=dataset.num_items,
        dim=16,
        generator=make_generator(0, "ridge"),
    )


def make_judge(dataset: PreparedDataset, **changes: Any) -> RidgeJudge:
    settings: dict[str, Any] = {"history_length": 100, "k": K, "max_users": 1000, "seed": 0}
    return RidgeJudge(dataset, candidates="all", **settings | changes)


def slow_recall(dataset: PreparedDataset, pair: tuple[float, float], length: int = 100) -> float:
    """Rank for one user after the other, what was not met in training last."""
    (regularization, unobserved), recalls = pair, []
    fitted = make_factors(dataset).fit(
        regularization=regularization, unobserved=unobserved, iterations=4
    )
    factors = fitted.double().numpy()
    num_items, dim = factors.shape
    for user in np.unique(dataset.validation.users):
        had = dataset.train.items[dataset.train.users == user]
        read = np.unique(had[-length:])
        frequency = len(read) + unobserved * num_items
        system = unobserved * factors.T @ factors + regularization * frequency * np.eye(dim)
        system += factors[read].T @ factors[read]
        scores = factors @ np.linalg.solve(system, factors[read].sum(axis=0))
        scores[had] = -np.inf
        chosen = set(dataset.validation.items[dataset.validation.users == user].tolist())
        found = chosen & set(np.argsort(-scores, kind="stable")[:K].tolist())
        recalls.append(len(found) / len(chosen))
    return float(np.mean(recalls))


@pytest.mark.parametrize("length", [4, 100])
def test_the_chosen_pair_ranks_best_in_a_slow_loop(
    dataset: PreparedDataset, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    slow = [slow_recall(dataset, pair, length) for pair in PAIRS]
    assert len(set(slow)) > 1
    judge = make_judge(dataset, history_length=length)
    with caplog.at_level(logging.INFO):
        chosen = choose_ridge(make_factors(dataset), PAIRS, judge, 16)
    assert chosen == PAIRS[slow.index(max(slow))]
    text = f"regularization {chosen[0]:g} and unobserved {chosen[1]:g} are the best on validation"
    assert f"of 4 pairs {text}, recall@3 {max(slow):.4f} alone" in caplog.text
    backwards = choose_ridge(make_factors(dataset), PAIRS[::-1], judge, 16)
    assert slow[PAIRS.index(backwards)] == max(slow)


def test_of_equal_pairs_the_first_is_taken(dataset: PreparedDataset) -> None:
    everything = make_judge(dataset, k=dataset.num_items)  # each list holds what was chosen
    for pairs in (PAIRS, PAIRS[::-1]):
        assert choose_ridge(make_factors(dataset), pairs, everything, 16) == pairs[0]


def test_at_most_so_many_users_are_asked_drawn_by_seed(dataset: PreparedDataset) -> None:
    assert len(make_judge(dataset)) == len(np.unique(dataset.validation.users)) > 7
    assert len(make_judge(dataset, max_users=7)) == 7


def test_without_validation_the_first_pair_is_taken_with_a_warning(
    dataset: PreparedDataset, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = dataset.validation.take(np.zeros(0, dtype=np.int64))
    judge = make_judge(replace(dataset, validation=nothing))
    assert choose_ridge(make_factors(dataset), PAIRS, judge, 16) == PAIRS[0]
    assert "the ridge part takes the first of the listed settings" in caplog.text
