"""Popularity of what is recommended, by values worked by hand."""

import numpy as np
import pytest

from recsys.data import PreparedDataset
from recsys.diagnosis import recommend_by_popularity
from recsys.evaluation import build_queries
from recsys.foundations import Ragged

COUNTS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])  # one item a decile


@pytest.fixture
def shares(dataset: PreparedDataset) -> dict[str, np.ndarray]:
    """Rank ten items for two users to whom all items score alike."""
    queries = build_queries(dataset, "validation").slice(0, 2)
    popularity = recommend_by_popularity(
        queries,
        np.ones((2, 1), np.float32),
        np.zeros((10, 1), np.float32),
        COUNTS,
        temperature=0.5,
        k=2,
        exclude_seen=False,
    )
    assert popularity.num_users == 2
    assert popularity.bounds == [(int(count), int(count)) for count in COUNTS]
    return popularity.shares


def test_scores_alike_rank_by_popularity_with_log_q_and_against_it_without(
    shares: dict[str, np.ndarray],
) -> None:
    assert shares["minus_log_q"].tolist() == [0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0]
    assert shares["plus_log_q"].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0.5]
    assert shares["scores"].tolist() == [0.5, 0.5, 0, 0, 0, 0, 0, 0, 0, 0]  # ties by row


def test_the_temperature_divides_the_scores_and_not_log_q(dataset: PreparedDataset) -> None:
    # Item 9 leads item 0 by log 512 = 6.24 in log Q. Scores 0 and -1 over a temperature of 0.1
    # are 10 apart, so item 0 stays in front; over 1 they are 1 apart, and it falls behind.
    queries = build_queries(dataset, "validation").slice(0, 1)
    vectors = np.full((10, 1), -1.0, np.float32)
    vectors[0] = 0.0
    first = {}
    for temperature in (0.1, 1.0):
        popularity = recommend_by_popularity(
            queries,
            np.ones((1, 1), np.float32),
            vectors,
            COUNTS,
            temperature=temperature,
            k=1,
            exclude_seen=False,
        )
        first[temperature] = int(popularity.shares["plus_log_q"].argmax())
    assert first == {0.1: 0, 1.0: 9}


def test_items_without_training_events_and_seen_ones_are_not_ranked(
    dataset: PreparedDataset,
) -> None:
    queries = build_queries(dataset, "validation").slice(0, 1)
    queries = type(queries)(**vars(queries) | {"seen": Ragged(np.array([0, 1]), np.array([3]))})
    popularity = recommend_by_popularity(
        queries,
        np.ones((1, 1), np.float32),
        np.arange(4, dtype=np.float32)[:, None],
        np.array([5, 6, 0, 7]),
        temperature=1.0,
        k=4,
        exclude_seen=True,
    )
    # Of the items 0, 1 and 3 that have events, 3 is seen; 0 and 1 are the deciles 1 and 4.
    assert popularity.shares["scores"].tolist() == [0.5, 0, 0, 0.5, 0, 0, 0, 0, 0, 0]
    assert popularity.bounds[1] is None
