"""The made-up data hold what they promise: sizes, popularity, preferences, order."""

import time

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data import LogOptions, SyntheticData, interactions_from_table, make_synthetic
from recsys.foundations import ArgumentError


def make(**changes: float) -> SyntheticData:
    sizes = {"num_users": 400, "num_items": 600, "num_interactions": 12_000, "seed": 3}
    return make_synthetic(**(sizes | changes))  # type: ignore[arg-type]


def numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.array([int(str(each)[1:]) for each in column])


def test_the_sizes_are_those_asked_for() -> None:
    data = make()
    assert (len(data.users), len(data.items), len(data.interactions)) == (400, 600, 12_000)
    assert len(data.interactions["user_id"].unique()) == 400
    assert len(data.items["item_id"].unique()) == 600
    assert len(make(num_interactions=7).interactions) == 7
    tiny = make(num_users=1, num_items=1, num_interactions=3, num_clusters=1)
    assert tiny.interactions["item_id"].to_pylist() == ["i0"] * 3


def test_the_seed_decides_everything() -> None:
    assert make().interactions.equals(make().interactions)
    assert make().items.equals(make().items)
    assert not make().interactions.equals(make(seed=4).interactions)


def test_times_rise_within_a_user_and_over_the_log() -> None:
    log = make().interactions
    times, users = log["timestamp"].to_numpy(), numbers(log["user_id"])
    assert (np.diff(times) >= 0).all()
    order = np.lexsort((times, users))
    same_user = np.diff(users[order]) == 0
    assert (np.diff(times[order])[same_user] > 0).all()


def test_popularity_falls_as_zipf_says() -> None:
    # Drawn without preferences and in so large a catalogue that repeats are rare, rank r has a
    # share of r^-1 / H(N): the 10 most popular of 5000 items take 2.93 / 9.09 = 32 % of draws.
    data = make(
        num_users=20_000, num_items=5000, num_interactions=60_000, cluster_share=0, sequence_share=0
    )
    counts = np.sort(np.bincount(numbers(data.interactions["item_id"]), minlength=5000))[::-1]
    assert counts[:10].sum() / 60_000 == pytest.approx(0.32, abs=0.04)
    flat = make(zipf_exponent=0, cluster_share=0, sequence_share=0)
    assert np.bincount(numbers(flat.interactions["item_id"])).max() < 60  # 20 on average


def test_users_stay_in_their_clusters() -> None:
    # Ten events of a user do not use up a cluster of thirty items.
    data = make(num_interactions=4000, cluster_share=0.9, sequence_share=0)
    users, items = (numbers(data.interactions[name]) for name in ("user_id", "item_id"))
    own = (data.item_clusters[items][:, None] == data.user_clusters[users]).any(axis=1)
    assert own.mean() > 0.8  # redrawn repeats take away a little
    blind = make(cluster_share=0, sequence_share=0)
    users, items = (numbers(blind.interactions[name]) for name in ("user_id", "item_id"))
    own = (blind.item_clusters[items][:, None] == blind.user_clusters[users]).any(axis=1)
    assert own.mean() < 0.35


def test_the_next_item_depends_on_the_last_one() -> None:
    def share_of_the_commonest_successor(sequence_share: float) -> float:
        sizes = {"num_users": 2000, "num_interactions": 40_000, "num_clusters": 3}
        log = make(**sizes, sequence_share=sequence_share).interactions
        users, items = (numbers(log[name]) for name in ("user_id", "item_id"))
        order = np.lexsort((log["timestamp"].to_numpy(), users))
        users, items = users[order], items[order]
        within = users[1:] == users[:-1]
        pairs = np.zeros((600, 600), int)
        np.add.at(pairs, (items[:-1][within], items[1:][within]), 1)
        return float(pairs.max(axis=1).sum() / pairs.sum())

    assert share_of_the_commonest_successor(0.5) > share_of_the_commonest_successor(0.0) + 0.15


def test_features_tell_the_cluster() -> None:
    data = make()
    category = [f"category{cluster}" for cluster in data.item_clusters]
    assert (
        np.mean([a == b for a, b in zip(category, data.items["category"].to_pylist(), strict=True)])
        > 0.85
    )
    segment = [f"segment{cluster}" for cluster in data.user_clusters[:, 0]]
    assert (
        np.mean([a == b for a, b in zip(segment, data.users["segment"].to_pylist(), strict=True)])
        > 0.75
    )
    prices = data.items["price"].to_numpy()
    assert 0 < np.isnan(prices).mean() < 0.1
    assert np.nanmin(prices) > 0
    tags = data.items["tags"].to_pylist()
    assert {len(each) for each in tags} <= {1, 2, 3, 4}
    assert all(title for title in data.items["title"].to_pylist())


def test_the_log_is_read_like_any_other() -> None:
    data = make()
    log = interactions_from_table(
        data.interactions, LogOptions(timestamp_unit="us", context=("device",))
    )
    assert (log.clock, len(log.table), log.dropped) == ("time", 12_000, {})
    assert log.table["timestamp"].equals(data.interactions["timestamp"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_users": 0}, "`num_users` must be above 0, got 0"),
        ({"num_clusters": 601}, "`num_clusters` must be at most 600, got 601"),
        ({"cluster_share": 1.5}, r"`cluster_share` must be in \[0, 1\], got 1.5"),
    ],
)
def test_impossible_sizes_are_refused(changes: dict[str, float], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make(**changes)


@pytest.mark.slow
def test_ten_million_rows_take_less_than_a_minute() -> None:
    start = time.monotonic()
    data = make(num_users=1_000_000, num_items=200_000, num_interactions=10_000_000)
    assert len(data.interactions) == 10_000_000
    assert time.monotonic() - start < 60
