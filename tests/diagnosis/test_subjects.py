"""From a model to the rows that are measured: interests and times as in training."""

import numpy as np
import pytest
import torch

from recsys.data import PreparedDataset
from recsys.diagnosis import Subject, Towers, recommend_by_popularity
from recsys.diagnosis.positives import choose_positives
from recsys.diagnosis.subjects import subject_of_positives, subjects_of_batches
from recsys.evaluation import build_queries, embed_queries
from recsys.models import ModelSpec, UserTowerSpec, build_two_tower, encode_candidates

INTERESTS = UserTowerSpec(history="attention", num_interests=3)
TIMED = UserTowerSpec(history="transformer", time_gaps=True)


def make_towers(dataset: PreparedDataset, tower: UserTowerSpec, ridge_dim: int = 0) -> Towers:
    torch.manual_seed(0)
    model = build_two_tower(
        ModelSpec(
            embedding_dim=8, user_tower=tower, item_bias=True, init_std=0.5, ridge_dim=ridge_dim
        ),
        num_users=dataset.num_users,
        num_items=dataset.num_items,
        user_schema=dataset.users.features.schema,
        item_schema=dataset.items.features.schema,
        context_schema=dataset.context_schema,
    )
    if model.ridge is not None:
        model.ridge.set_item_factors(torch.randn(dataset.num_items, ridge_dim))
    return Towers(model, encode_candidates(model, dataset.items.features, dataset.num_items))


def subjects(dataset: PreparedDataset, towers: Towers) -> list[Subject]:
    positives = subject_of_positives(dataset, towers, choose_positives(dataset, 30, 0))
    batches = subjects_of_batches(
        dataset, towers, ties="include", batch_size=32, num_batches=2, seed=0
    )
    return [positives, *batches]


def test_a_row_has_the_interest_that_scores_its_positive_highest(dataset: PreparedDataset) -> None:
    towers = make_towers(dataset, INTERESTS)
    chosen = choose_positives(dataset, 30, 0)
    interests = embed_queries(towers.model, chosen.queries)  # [N, M, E]
    assert interests.shape[1:] == (3, 9)
    positives = subject_of_positives(dataset, towers, chosen)
    taken = set()
    for query, row, vector in zip(
        interests, chosen.item_rows, positives.query_vectors.numpy(), strict=True
    ):
        best = max(range(3), key=lambda one: float(query[one] @ towers.item_vectors[row]))
        assert np.array_equal(vector, query[best])
        taken.add(best)
    assert len(taken) > 1
    for batch in subjects(dataset, towers)[1:]:
        assert batch.query_vectors.shape == (32, 9)


@pytest.mark.parametrize("tower", [INTERESTS, TIMED])
def test_the_rows_of_a_batch_have_finite_scores(
    dataset: PreparedDataset, tower: UserTowerSpec
) -> None:
    for subject in subjects(dataset, make_towers(dataset, tower)):
        assert subject.scores().isfinite().all()


def test_a_model_that_reads_times_is_given_them(dataset: PreparedDataset) -> None:
    towers = make_towers(dataset, TIMED)
    untimed = PreparedDataset(**{**vars(dataset), "clock": "order"})
    for timed, other in zip(subjects(dataset, towers), subjects(untimed, towers), strict=True):
        assert torch.equal(timed.positive_rows, other.positive_rows)
        assert not torch.allclose(timed.query_vectors, other.query_vectors)


@pytest.mark.parametrize("tower", [UserTowerSpec(), INTERESTS])
def test_what_a_ridge_part_adds_in_search_is_no_part_of_the_rows(
    dataset: PreparedDataset, tower: UserTowerSpec
) -> None:
    joint, alone = make_towers(dataset, tower, ridge_dim=16), make_towers(dataset, tower)
    assert joint.item_vectors.shape[1] == alone.item_vectors.shape[1] + 16
    assert joint.item_vectors[:, 9:].any()
    for one, other in zip(subjects(dataset, joint), subjects(dataset, alone), strict=True):
        assert torch.equal(one.item_vectors, other.item_vectors)
        assert torch.equal(one.query_vectors, other.query_vectors)


def test_recommended_items_are_those_that_an_interest_likes_most(dataset: PreparedDataset) -> None:
    # Interests 1 and -1 score four items of the values 3, -2, 1, 0 by 3, 2, 1, 0: the first two
    # are given, whose training counts are 1 and 2.
    queries = build_queries(dataset, "validation").slice(0, 1)
    popularity = recommend_by_popularity(
        queries,
        np.array([[[1.0], [-1.0]]], np.float32),
        np.array([[3.0], [-2.0], [1.0], [0.0]], np.float32),
        np.array([1, 2, 3, 4]),
        temperature=1.0,
        k=2,
        exclude_seen=False,
    )
    given = np.flatnonzero(popularity.shares["scores"])
    bounds = [popularity.bounds[decile] for decile in given]
    assert bounds == [(1, 1), (2, 2)]
