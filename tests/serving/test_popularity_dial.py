"""The popularity dial in lookups: against a slow ranking, and where it does nothing."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError
from recsys.index import ExactIndex, IndexSettings
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]
TEMPERATURE = 0.4


def make_rows(num_users: int = 30, num_items: int = 40) -> list[tuple[str, str]]:
    """Let every user have items of which low numbers are chosen more often."""
    rng = np.random.default_rng(0)
    rows = [
        (f"u{user}", f"i{item}")
        for user in range(num_users)
        for item in np.unique((num_items * rng.random(8) ** 2).astype(int))
    ]
    return rows + [("u0", f"i{item}") for item in range(num_items)]  # each has an event


@pytest.fixture
def lookup(make_bundle: MakeBundle) -> Lookup:
    return Lookup(make_bundle(make_rows(), item_bias=True, temperature=TEMPERATURE))


def slow_recommend(lookup: Lookup, user: str, k: int, alpha: float) -> list[tuple[str, float]]:
    """Rank every item by score - alpha * T * log(share of the events of the log)."""
    items = [item for _, item in make_rows()]
    vector = np.array(lookup.embed_users([user])["vector"].to_pylist()[0])
    scored = []
    for name, values in zip(*lookup.embed_items().to_pydict().values(), strict=True):
        share = items.count(name) / len(items)
        scored.append((name, float(vector @ values) - alpha * TEMPERATURE * np.log(share)))
    seen = {item for owner, item in make_rows() if owner == user}
    ranked = sorted(scored, key=lambda one: -one[1])
    return [one for one in ranked if one[0] not in seen][:k]


@pytest.mark.parametrize("alpha", [-10.0, -0.5, 0.3, 1.0, 10.0])
def test_items_are_ranked_by_the_score_less_log_popularity(lookup: Lookup, alpha: float) -> None:
    for user in ("u3", "u17"):
        table = lookup.recommend([user], k=6, popularity_alpha=alpha)
        names, scores = zip(*slow_recommend(lookup, user, 6, alpha), strict=True)
        assert table["item_id"].to_pylist() == list(names)
        assert table["score"].to_pylist() == pytest.approx(scores, abs=1e-4)


def test_the_mean_popularity_of_what_is_shown_falls_with_alpha(lookup: Lookup) -> None:
    items = [item for _, item in make_rows()]
    shown = [
        np.mean([items.count(item) for item in table["item_id"].to_pylist()])
        for table in (lookup.recommend(k=5, popularity_alpha=a) for a in (-5.0, 0.0, 1.0, 5.0))
    ]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] > 2 * shown[-1]


def test_alpha_0_asks_the_index_and_widens_nothing(
    lookup: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = lookup.recommend(k=5)
    monkeypatch.setattr("recsys.index.popularity_dial.ExactIndex", None)  # cannot be made
    assert lookup.recommend(k=5, popularity_alpha=0.0).equals(plain)
    with pytest.raises(TypeError, match="not callable"):
        lookup.recommend(k=5, popularity_alpha=0.1)


def test_another_alpha_does_not_ask_the_index(make_bundle: MakeBundle) -> None:
    settings = IndexSettings(kind="ivf_flat", num_lists=8, num_probes=1)
    lookup = Lookup(make_bundle(make_rows(), index=settings))
    plain = {exact: lookup.recommend(k=5, exact=exact) for exact in (False, True)}
    assert not plain[False].equals(plain[True])  # the index misses some
    turned = [lookup.recommend(k=5, exact=e, popularity_alpha=0.5) for e in (False, True)]
    assert turned[0].equals(turned[1])


def test_filters_and_seen_items_hold(lookup: Lookup) -> None:
    allowed, exclude = [f"i{item}" for item in range(12)], ["i3", "i4"]
    table = lookup.recommend(k=50, allowed=allowed, exclude=exclude, popularity_alpha=2.0)
    assert set(table["item_id"].to_pylist()) <= set(allowed) - set(exclude)
    seen = set(make_rows())
    pairs = zip(table["user_id"].to_pylist(), table["item_id"].to_pylist(), strict=True)
    assert table.num_rows > 100
    assert not seen & set(pairs)


def test_users_of_whom_nothing_is_known_keep_the_popular_items(lookup: Lookup) -> None:
    plain = lookup.recommend(["nobody", "u5"], k=4)
    turned = lookup.recommend(["nobody", "u5"], k=4, popularity_alpha=5.0)
    assert turned["fallback"].to_pylist() == [True] * 4 + [False] * 4
    assert turned.slice(0, 4).equals(plain.slice(0, 4))
    assert not turned.slice(4).equals(plain.slice(4))


def test_users_get_the_same_alone_and_together(lookup: Lookup) -> None:
    together = lookup.recommend(k=5, popularity_alpha=0.7)
    alone = [lookup.recommend([f"u{n}"], k=5, popularity_alpha=0.7) for n in range(30)]
    joined = pa.concat_tables(alone).sort_by([("user_id", "ascending"), ("rank", "ascending")])
    order = [("user_id", "ascending"), ("rank", "ascending")]
    assert joined.equals(together.sort_by(order))


def test_the_widened_vectors_are_those_of_the_bundle(lookup: Lookup) -> None:
    """The copy holds each item's vector and its log share, and nothing else."""
    made: list[np.ndarray] = []
    original = ExactIndex.__init__

    def spy(self: ExactIndex, vectors: np.ndarray) -> None:
        made.append(vectors)
        original(self, vectors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactIndex, "__init__", spy)
        lookup.recommend(k=2, popularity_alpha=1.0)
        lookup.recommend(k=2, popularity_alpha=-1.0)
    (wide,) = made
    assert np.array_equal(wide[:, :-1], lookup.bundle.item_vectors)
    assert np.exp(wide[:, -1].astype(float)).sum() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("alpha", [11.0, float("nan"), float("-inf")])
def test_an_alpha_out_of_range_is_refused(lookup: Lookup, alpha: float) -> None:
    with pytest.raises(ArgumentError, match="`popularity_alpha` must lie between -10 and 10, got"):
        lookup.recommend(k=5, popularity_alpha=alpha)
