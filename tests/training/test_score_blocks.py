"""The NDCG of scores against a slow loop; blocks cover every query once."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from recsys.data import PreparedDataset
from recsys.evaluation import build_queries
from recsys.foundations import Ragged
from recsys.training import score_blocks as module
from recsys.training.score_blocks import ndcg_of_scores, score_blocks


@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("num_items", [30, 400])
def test_it_is_the_ndcg_of_a_list_of_a_hundred_in_a_slow_loop(
    dataset: PreparedDataset, num_items: int, *, exclude_seen: bool
) -> None:
    rng = np.random.default_rng(0)
    queries = build_queries(dataset, "validation")
    # More than one is right.
    chosen = [
        {*queries.truth[place].tolist(), 5} for place in range(len(queries))
    ]  # more than one is right
    truth = Ragged.from_pairs(
        np.repeat(np.arange(len(chosen)), [len(one) for one in chosen]),
        np.array([item for one in chosen for item in sorted(one)]),
        len(chosen),
    )
    scores = rng.normal(size=(len(queries), num_items)).astype(np.float32)
    expected = []
    for place, right in enumerate(chosen):
        had = set(queries.seen[place].tolist()) if exclude_seen else set()
        order = [item for item in np.argsort(-scores[place]).tolist() if item not in had][:100]
        gain = sum(1 / np.log2(2 + n) for n, item in enumerate(order) if item in right)
        expected.append(gain / sum(1 / np.log2(2 + n) for n in range(len(right))))
    asked = replace(queries, truth=truth)
    found = ndcg_of_scores(torch.from_numpy(scores), asked, exclude_seen=exclude_seen)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert len(set(expected)) > 10


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
