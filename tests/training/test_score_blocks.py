"""The NDCG of scores is that of a search with them; blocks cover every query once."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from recsys.data import PreparedDataset
from recsys.evaluation import RankedCandidates, build_queries, choice_ndcg, rank_by_vectors
from recsys.index import ExactIndex
from recsys.training import score_blocks as module
from recsys.training.score_blocks import ndcg_of_scores, score_blocks


@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("num_items", [30, 400])
def test_it_is_the_ndcg_of_a_search_with_the_same_vectors(
    dataset: PreparedDataset, num_items: int, *, exclude_seen: bool
) -> None:
    rng = np.random.default_rng(0)
    queries = build_queries(dataset, "validation")
    users = rng.normal(size=(len(dataset.users), 6)).astype(np.float32)
    items = rng.normal(size=(num_items, 6)).astype(np.float32)
    expected = choice_ndcg(
        queries,
        rank_by_vectors(
            lambda block: users[block.user_rows],
            ExactIndex(items),
            RankedCandidates("all", None, num_items),
        ),
        exclude_seen=exclude_seen,
        ranked=RankedCandidates("all", None, num_items),
    )
    scores = torch.from_numpy(users[queries.user_rows] @ items.T)
    found = ndcg_of_scores(scores, queries, exclude_seen=exclude_seen)
    assert found.shape == (len(queries),)
    assert float(found.mean()) == pytest.approx(expected, abs=1e-12)


def test_what_a_user_had_is_nowhere_in_the_list(dataset: PreparedDataset) -> None:
    queries = build_queries(dataset, "validation")
    had = replace(queries, truth=queries.seen)
    scores = torch.zeros(len(queries), dataset.num_items)
    assert not ndcg_of_scores(scores.clone(), had, exclude_seen=True).any()
    assert ndcg_of_scores(scores, had, exclude_seen=False).any()


def test_blocks_cover_every_query_once(
    dataset: PreparedDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = build_queries(dataset, "validation")
    monkeypatch.setattr(module, "_MOST_SCORES", 7 * 30 + 1)
    sizes = [len(block) for block in score_blocks(queries, 30)]
    assert sizes[0] == 7
    assert sum(sizes) == len(queries)
    rows = np.concatenate([block.user_rows for block in score_blocks(queries, 30)])
    np.testing.assert_array_equal(rows, queries.user_rows)
    assert [len(block) for block in score_blocks(queries, 10**9)] == [1] * len(queries)
