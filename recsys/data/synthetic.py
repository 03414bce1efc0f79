"""Made-up interactions with a structure that a right model must find.

Items belong to clusters and are popular by Zipf's law; users prefer one cluster, like a second
one, and now and then take the item that follows their last one. Features say which cluster an
item or a user belongs to, with some noise.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, check_positive, make_numpy_generator

_WORDS = 12  # words and tags that a cluster has of its own
_START = 1_672_531_200_000_000  # 2023-01-01T00:00:00Z in µs
_YEAR = 365 * 86_400 * 1_000_000  # µs
_ROUNDS = 6


@dataclass(frozen=True)
class SyntheticData:
    """The three tables.

    Attributes:
        interactions: user_id, item_id (text `u0`, `i0`, ...), timestamp (int64, µs UTC, rising
            within a user, no two of a user alike), device (text); in the order of time.
        items: item_id, category (text), tags (list of text), price (float64 or null), title.
        users: user_id, segment (text).
        item_clusters: [num_items] int64, the planted truth.
        user_clusters: [num_users, 2] int64, the preferred and the second cluster.
    """

    interactions: pa.Table
    items: pa.Table
    users: pa.Table
    item_clusters: NDArray[np.int64]
    user_clusters: NDArray[np.int64]


@dataclass(frozen=True)
class _Catalogue:
    """Items ordered by cluster, then popularity.

    Attributes:
        order: [N], item rows in that order.
        starts: [K + 1], where each cluster begins.
        cumulative: [N + 1], the draw probabilities in that order, summed up.
        place: [N], where each item row stands.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    place: NDArray[np.int64]

    def draw(self, clusters: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an item of each given cluster by popularity; cluster -1: of all items."""
        whole = clusters < 0
        low = np.where(whole, 0.0, self.cumulative[self.starts[clusters]])
        high = np.where(whole, 1.0, self.cumulative[self.starts[clusters + 1]])
        points = low + (high - low) * rng.random(len(clusters))
        places = np.searchsorted(self.cumulative, points, side="right") - 1
        first = np.where(whole, 0, self.starts[clusters])
        last = np.where(whole, len(self.order), self.starts[clusters + 1]) - 1
        found: NDArray[np.int64] = self.order[np.clip(places, first, last)]
        return found

    def follow(
        self, items: NDArray[np.int64], clusters: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Give the item that stands `steps` after each item in the circle of its cluster."""
        first, sizes = self.starts[clusters], np.diff(self.starts)[clusters]
        found: NDArray[np.int64] = self.order[first + (self.place[items] - first + steps) % sizes]
        return found


def make_synthetic(
    *,
    num_users: int,
    num_items: int,
    num_interactions: int,
    seed: int,
    num_clusters: int = 20,
    zipf_exponent: float = 1.0,
    cluster_share: float = 0.85,
    sequence_share: float = 0.2,
) -> SyntheticData:
    """Make a data set of any size; the same arguments give the same tables.

    Args:
        num_users: Every user has interactions if there are enough.
        num_items: Not every item need be taken.
        num_interactions: Rows of the log. A user takes an item twice only where so many of a
            user's draws fall on few items that redrawing does not help.
        seed: Any integer.
        num_clusters: At most `num_items`.
        zipf_exponent: The item of popularity rank r is drawn in proportion to r^-exponent.
        cluster_share: Share of draws inside the user's two clusters (four in five of these in the
            preferred one); the others are from the whole catalogue.
        sequence_share: Share of events that take the item following the user's last one.

    Raises:
        ArgumentError: A number is not above 0, a share is not in [0, 1], or there are more clusters
            than items.
    """
    sizes = {"num_users": num_users, "num_items": num_items, "num_interactions": num_interactions}
    for name, value in {**sizes, "num_clusters": num_clusters}.items():
        check_positive(name, value)
    for name, share in {"cluster_share": cluster_share, "sequence_share": sequence_share}.items():
        if not 0 <= share <= 1:
            raise ArgumentError(f"`{name}` must be in [0, 1], got {share}.")
    if num_clusters > num_items:
        raise ArgumentError(f"`num_clusters` must be at most {num_items}, got {num_clusters}.")
    rng = make_numpy_generator(seed, "synthetic", "structure")
    item_clusters = rng.permutation(np.arange(num_items, dtype=np.int64) % num_clusters)
    catalogue = _make_catalogue(item_clusters, num_clusters, zipf_exponent, rng)
    masses = np.diff(catalogue.cumulative[catalogue.starts])  # so that popularity stays Zipf's
    user_clusters = rng.choice(num_clusters, (num_users, 2), p=masses / masses.sum())
    counts = _activity(num_users, num_interactions, rng)
    users = np.repeat(np.arange(num_users, dtype=np.int64), counts)
    rng = make_numpy_generator(seed, "synthetic", "events")
    items = _draw_items(
        users,
        user_clusters=user_clusters,
        item_clusters=item_clusters,
        catalogue=catalogue,
        cluster_share=cluster_share,
        sequence_share=sequence_share,
        rng=rng,
    )
    interactions = _log_table(users, items, counts, rng)
    return SyntheticData(
        interactions,
        _item_table(item_clusters, num_clusters, make_numpy_generator(seed, "synthetic", "items")),
        _user_table(user_clusters, num_clusters, make_numpy_generator(seed, "synthetic", "users")),
        item_clusters,
        user_clusters,
    )


def _make_catalogue(
    item_clusters: NDArray[np.int64],
    num_clusters: int,
    exponent: float,
    rng: np.random.Generator,
) -> _Catalogue:
    num_items = len(item_clusters)
    ranks = rng.permutation(num_items)
    weights = (ranks + 1.0) ** -exponent
    order = np.lexsort((ranks, item_clusters)).astype(np.int64)
    cumulative = np.concatenate([[0.0], np.cumsum(weights[order])])
    starts = np.searchsorted(item_clusters[order], np.arange(num_clusters + 1)).astype(np.int64)
    place = np.empty(num_items, np.int64)
    place[order] = np.arange(num_items)
    return _Catalogue(order, starts, cumulative / cumulative[-1], place)


def _activity(num_users: int, num_interactions: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Share the interactions among users: a few each, the rest by a lognormal taste for more."""
    floor = min(5, num_interactions // num_users)
    weights = rng.lognormal(0.0, 1.0, num_users)
    extra = rng.multinomial(num_interactions - floor * num_users, weights / weights.sum())
    return (floor + extra).astype(np.int64)


def _draw_items(
    users: NDArray[np.int64],
    *,
    user_clusters: NDArray[np.int64],
    item_clusters: NDArray[np.int64],
    catalogue: _Catalogue,
    cluster_share: float,
    sequence_share: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw an item for each event; `users` is sorted and each user's events are in order."""

    def wish(of_users: NDArray[np.int64]) -> NDArray[np.int64]:
        chance = rng.random(len(of_users))
        second = (chance >= 0.8 * cluster_share).astype(np.int64)
        clusters = np.where(chance < cluster_share, user_clusters[of_users, second], -1)
        return catalogue.draw(clusters, rng)

    items = wish(users)
    begins = np.concatenate([[True], users[1:] != users[:-1]])
    begins |= rng.random(len(users)) >= sequence_share
    head = np.maximum.accumulate(np.where(begins, np.arange(len(users)), 0))
    steps = np.arange(len(users)) - head  # events since the last free draw
    items = catalogue.follow(items[head], item_clusters[items[head]], steps)
    for _ in range(_ROUNDS):
        again = _repeats(users * len(item_clusters) + items)
        if not len(again):
            break
        items[again] = wish(users[again])
    return items


def _repeats(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the positions whose key stands before, too."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    found: NDArray[np.int64] = np.sort(order[1:][ordered[1:] == ordered[:-1]])
    return found


def _log_table(
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    counts: NDArray[np.int64],
    rng: np.random.Generator,
) -> pa.Table:
    """Give every event a time, and put all in the order of time."""
    gaps = 1 + (rng.exponential(1.0, len(users)) * (_YEAR / np.maximum(counts, 1))[users]).astype(
        np.int64
    )
    since = np.cumsum(gaps)
    before = np.concatenate([[0], since])[np.cumsum(counts) - counts]
    begin = _START + rng.integers(0, _YEAR, len(counts))
    times = begin[users] + since - before[users]
    order = np.argsort(times, kind="stable")
    own = rng.integers(0, 3, len(counts))[users]
    devices = np.where(rng.random(len(users)) < 0.8, own, rng.integers(0, 3, len(users)))
    names = pa.array(["phone", "desktop", "tablet"], pa.large_string())
    return pa.table(
        {
            "user_id": _labels("u", users[order]),
            "item_id": _labels("i", items[order]),
            "timestamp": times[order],
            "device": names.take(pa.array(devices[order])),
        }
    )


def _item_table(
    clusters: NDArray[np.int64], num_clusters: int, rng: np.random.Generator
) -> pa.Table:
    num_items = len(clusters)
    shown = np.where(
        rng.random(num_items) < 0.1, rng.integers(0, num_clusters, num_items), clusters
    )
    counts = rng.integers(1, 5, num_items)
    owners = np.repeat(np.arange(num_items), counts)
    general = rng.random(len(owners)) < 0.25  # such tags stand in all clusters
    numbers = clusters[owners] * _WORDS + rng.integers(0, _WORDS, len(owners))
    tags = _labels("tag", np.where(general, -1 - rng.integers(0, _WORDS, len(owners)), numbers))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int64())
    prices = np.round(np.exp(rng.normal(2.0 + clusters / num_clusters * 2, 0.4)), 2)
    words = [clusters * _WORDS + rng.integers(0, _WORDS, num_items) for _ in range(2)]
    blank = pa.scalar(" ", pa.large_string())
    number = pc.cast(pa.array(np.arange(num_items)), pa.large_string())
    titles = [_labels("word", words[0]), _labels("word", words[1]), number]
    return pa.table(
        {
            "item_id": _labels("i", np.arange(num_items)),
            "category": _labels("category", shown),
            "tags": pa.LargeListArray.from_arrays(offsets, tags),
            "price": pa.array(prices, mask=rng.random(num_items) < 0.02),
            "title": pc.binary_join_element_wise(*titles, blank),
        }
    )


def _user_table(
    clusters: NDArray[np.int64], num_clusters: int, rng: np.random.Generator
) -> pa.Table:
    noise = rng.integers(0, num_clusters, len(clusters))
    shown = np.where(rng.random(len(clusters)) < 0.2, noise, clusters[:, 0])
    ids = _labels("u", np.arange(len(clusters)))
    return pa.table({"user_id": ids, "segment": _labels("segment", shown)})


def _labels(prefix: str, numbers: NDArray[np.int64]) -> pa.Array:
    """Give `prefix` followed by each number."""
    digits = pc.cast(pa.array(numbers), pa.large_string())
    first, nothing = (pa.scalar(text, pa.large_string()) for text in (prefix, ""))
    return pc.binary_join_element_wise(first, digits, nothing)
