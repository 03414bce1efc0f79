"""Slices of cold items and of new users, against values worked by hand."""

import numpy as np

from recsys.data import FeatureSchema, FeatureTable
from recsys.evaluation import EvaluationQueries, Resampling, Slice
from recsys.evaluation.slices import slice_items, slice_users
from recsys.foundations import Ragged

RESAMPLING = Resampling(0, num=500)


def make_queries(truth: list[list[int]], known: list[bool]) -> EvaluationQueries:
    """Make queries whose users had as many events as their position says."""
    owners = np.repeat(np.arange(len(truth)), [len(rows) for rows in truth])
    rows = Ragged.from_pairs(owners, np.array([row for one in truth for row in one]), len(truth))
    lengths = np.arange(len(truth))
    histories = Ragged.from_pairs(
        np.repeat(lengths, lengths), np.zeros(lengths.sum(), int), len(truth)
    )
    nothing = FeatureTable.missing(FeatureSchema(), len(truth))
    return EvaluationQueries(
        user_rows=lengths,
        histories=histories,
        seen=histories,
        truth=rows,
        chosen=rows,
        context=nothing,
        features=nothing,
        known=np.array(known),
    )


def named(slices: list[Slice], begins: str) -> Slice:
    [found] = [one for one in slices if one.name.startswith(begins)]
    return found


def test_cold_items_stand_apart_with_an_interval_for_each_system() -> None:
    # Items 0 and 1 have events, 2 and 3 have none, 4 is no candidate. Ranks of the relevant items
    # of four users: cold ones stand at 1, 3, 2 and nowhere; with k = 2 two of four are found.
    queries = make_queries([[0, 2], [1, 2], [3, 4], [3]], [True] * 4)
    counts = np.array([5, 2, 0, 0])
    ranks = {"model": np.array([1.0, 1, 9, 3, 2, np.inf, np.inf])}
    ranks["popularity"] = np.array([1.0, np.inf, 2, np.inf, np.inf, np.inf, np.inf])
    warmth = slice_items(queries, counts, ranks, 2, RESAMPLING)["item_warmth"]
    cold = named(warmth, "cold")
    assert (cold.num_users, cold.num_positives) == (4, 4)
    model = cold.recall["model"]
    assert model.value == 2 / 4
    assert model.low is not None
    assert model.high is not None
    assert 0 <= model.low < 2 / 4 < model.high <= 1
    assert cold.recall["popularity"].value == 0
    assert named(warmth, "in training").recall["model"].value == 1 / 2
    assert named(warmth, "unknown").recall["model"].value == 0
    plain = cold.to_json(2)
    assert plain["recall_at_2"] == 2 / 4
    assert plain["interval"] == [model.low, model.high]
    assert plain["popularity_interval"] == [0, 0]


def test_new_users_and_users_without_history_stand_apart_with_intervals() -> None:
    queries = make_queries([[0]] * 8, [False, False, False, True, True, True, True, True])
    recall = {"model": np.array([1.0, 0, 0, 1, 1, 0, 1, 1]), "popularity": np.zeros(8)}
    slices = slice_users(queries, recall, RESAMPLING)
    new, known = named(slices["user_kind"], "new"), named(slices["user_kind"], "known")
    assert (new.num_users, known.num_users) == (3, 5)
    assert new.recall["model"].value == 1 / 3
    assert known.recall["model"].value == 4 / 5
    for one in (new, known):
        estimate = one.recall["model"]
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low < estimate.value < estimate.high
    nothing = named(slices["user_activity"], "0")
    assert (nothing.num_users, nothing.recall["model"].value) == (1, 1.0)
