"""A bonus for own items in lookups and explanations, against scores from the vectors by hand."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from recsys.bundle import Bundle
from recsys.evaluation import embed_queries
from recsys.index import IndexSettings
from recsys.models import UserTowerSpec
from recsys.serving import Lookup
from recsys.serving.altered_user import alter_user
from recsys.serving.app import create_app
from recsys.serving.ids import as_ids
from recsys.serving.known_users import KnownUsers

MakeBundle = Callable[..., Bundle]
WEIGHT, DECAY, LENGTH = 3.0, 0.7, 5
ROWS = [(f"u{u}", f"i{(u * 3 + n * n) % 13}") for u in range(8) for n in range(7)]
ROWS += [("u0", f"i{n}") for n in range(30)]  # each item has an event
ROWS += [("u1", "i3"), ("u1", "i9"), ("u1", "i3")]


def make_lookup(make_bundle: MakeBundle, **spec: Any) -> Lookup:
    settings = {
        "exclude_seen": False,
        "item_bias": True,
        "user_tower": UserTowerSpec(history_length=LENGTH),
        "repeats_weight": WEIGHT,
        "repeats_decay": DECAY,
    }
    return Lookup(make_bundle(ROWS, **settings | spec))


@pytest.fixture
def lookup(make_bundle: MakeBundle) -> Lookup:
    return make_lookup(make_bundle)


def history_of(user: str) -> list[str]:
    return [item for owner, item in ROWS if owner == user]


def bonus_for(history: list[str]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for age, item in enumerate(history[::-1][:LENGTH]):
        counts[item] = counts.get(item, 0.0) + DECAY**age
    return {item: WEIGHT * math.log(1 + count) for item, count in counts.items()}


def slow_recommend(
    lookup: Lookup, user: str, history: list[str], k: int, **given: Any
) -> list[tuple[str, float]]:
    """Score every item by the vectors that the lookup gives, and add the bonus."""
    vectors = np.array(lookup.embed_users([user], **given)["vector"].to_pylist())  # [M, E]
    bonus, scored = bonus_for(history), []
    for name, values in zip(*lookup.embed_items().to_pydict().values(), strict=True):
        scored.append((name, float((vectors @ np.array(values)).max()) + bonus.get(name, 0.0)))
    return sorted(scored, key=lambda one: -one[1])[:k]


def check(found: Any, expected: list[tuple[str, float]]) -> None:
    names, scores = zip(*expected, strict=True)
    assert found["item_id"].to_pylist() == list(names)
    assert found["score"].to_pylist() == pytest.approx(scores, abs=1e-4)


INTERESTS = UserTowerSpec(history="attention", num_interests=3, history_length=LENGTH)


@pytest.mark.parametrize(
    "spec", [{}, {"user_tower": INTERESTS}, {"index": IndexSettings(kind="hnsw", m=4)}]
)
def test_known_users_get_items_by_score_and_bonus(
    make_bundle: MakeBundle, spec: dict[str, Any]
) -> None:
    lookup = make_lookup(make_bundle, **spec)
    moved = 0
    for user in ("u0", "u1", "u4"):
        expected = slow_recommend(lookup, user, history_of(user), 6)
        for exact in (True, False):
            check(lookup.recommend([user], k=6, exact=exact), expected)
        fresh = slow_recommend(lookup, user, [], 6)
        moved += [name for name, _ in expected] != [name for name, _ in fresh]
    assert moved


def test_a_given_history_stands_in_place_of_the_stored_one(lookup: Lookup) -> None:
    given = ["i20", "i21", "i20", "i5", "i6", "i7", "i20"]  # the first is not read any more
    for user in ("u1", "stranger"):
        histories = {user: given}
        expected = slow_recommend(lookup, user, given, 6, histories=histories)
        check(lookup.recommend([user], k=6, histories=histories), expected)
        assert "i20" in [name for name, _ in expected]


def test_lists_do_not_depend_on_batching(lookup: Lookup) -> None:
    users = [f"u{n}" for n in range(8)]
    whole = lookup.recommend(users, k=5).to_pylist()
    parts = [lookup.recommend([user], k=5).to_pylist() for user in users]
    assert whole == [row for part in parts for row in part]


def test_filters_and_the_dial_hold_with_a_bonus(lookup: Lookup) -> None:
    expected = slow_recommend(lookup, "u1", history_of("u1"), 30)
    out, only = ["i3", "i0"], [f"i{n}" for n in range(0, 30, 2)]
    found = lookup.recommend(["u1"], k=4, exclude=out)
    check(found, [one for one in expected if one[0] not in out][:4])
    found = lookup.recommend(["u1"], k=4, allowed=only)
    check(found, [one for one in expected if one[0] in only][:4])
    mine = set(history_of("u1"))
    found = lookup.recommend(["u1"], k=4, exclude_seen=True)
    check(found, [one for one in expected if one[0] not in mine][:4])
    items = [item for _, item in ROWS]
    shifted = [(n, s - 0.5 * np.log(items.count(n) / len(items))) for n, s in expected]
    found = lookup.recommend(["u1"], k=4, popularity_alpha=0.5)
    check(found, sorted(shifted, key=lambda one: -one[1])[:4])


def test_users_of_whom_nothing_is_known_get_popular_items(lookup: Lookup) -> None:
    found = lookup.recommend(["nobody"], k=3)
    assert found["fallback"].to_pylist() == [True] * 3
    items = [item for _, item in ROWS]
    assert found["score"][0].as_py() == max(items.count(one) for one in set(items))


def test_neighbours_have_no_bonus(make_bundle: MakeBundle) -> None:
    found = make_lookup(make_bundle).neighbours(["i3"], k=5).to_pylist()
    assert found == make_lookup(make_bundle, repeats_weight=0.0).neighbours(["i3"], k=5).to_pylist()


@pytest.mark.parametrize("tower", [UserTowerSpec(history_length=LENGTH), INTERESTS])
def test_the_bonus_is_a_share_of_its_own_in_explanations(
    make_bundle: MakeBundle, tower: UserTowerSpec
) -> None:
    lookup = make_lookup(make_bundle, user_tower=tower)
    served = {row["item_id"]: row["score"] for row in lookup.recommend(["u1"], k=30).to_pylist()}
    items = ["i3", "i9", "i20"]
    found = lookup.explain("u1", items)
    bonus = bonus_for(history_of("u1"))
    assert bonus.keys() >= {"i3", "i9"}
    assert "i20" not in bonus
    for one in found:
        [item] = one.items.to_pylist()
        name = item["item_id"]
        assert item["score"] == pytest.approx(served[name], abs=1e-5)
        for side in ("user", "item"):
            shares = {
                row["piece"]: row["contribution"]
                for row in one.pieces.to_pylist()
                if row["side"] == side
            }
            assert sum(shares.values()) == pytest.approx(served[name], abs=1e-4)
            assert shares["repeats"] == pytest.approx(bonus.get(name, 0.0), abs=1e-6)


def test_without_the_events_of_an_item_its_score_falls_by_what_they_contribute(
    lookup: Lookup,
) -> None:
    found = lookup.explain("u1", ["i3"])
    rows = {row["history_item_id"]: row["contribution"] for row in found.history.to_pylist()}
    [score] = found.items["score"].to_pylist()
    plain = score_without(lookup, "u1", "i3")
    bonus = bonus_for(history_of("u1"))["i3"]
    assert score - rows["i3"] == pytest.approx(plain, abs=1e-4)
    # Another item's events carry none of the bonus.
    other = next(name for name in rows if name != "i3" and name in bonus_for(history_of("u1")))
    assert score - rows[other] == pytest.approx(
        score_without(lookup, "u1", other) + bonus, abs=1e-4
    )


def score_without(lookup: Lookup, user: str, hidden: str) -> float:
    """Score i3 by the towers, where the events of an item are unknown to them."""
    bundle = lookup.bundle
    query = KnownUsers(bundle).queries(as_ids([user]), histories=None, features=None, context=None)
    altered = alter_user(bundle.model, query)
    row, target = bundle.items.vocabulary.rows([hidden, "i3"])
    place = 1 + altered.history_rows.tolist().index(row)
    vector = embed_queries(bundle.model, altered.queries)[place]
    return float(vector @ bundle.item_vectors[target])


def test_without_a_bonus_explanations_have_no_such_share(make_bundle: MakeBundle) -> None:
    found = make_lookup(make_bundle, repeats_weight=0.0).explain("u1", ["i3"])
    assert "repeats" not in found.pieces["piece"].to_pylist()


def test_a_server_gives_what_the_lookup_gives(lookup: Lookup) -> None:
    app = create_app(lookup, max_k=50, max_batch=20, max_body_bytes=20_000, popularity_alpha=0.0)

    async def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            reply = await client.post(path, json=body)
        assert reply.status_code == 200
        return dict(reply.json())

    given = ["i20", "i21", "i20"]
    body = {"users": ["u1", "new"], "k": 4, "histories": {"new": given}}
    results = asyncio.run(post("/v1/recommend", body))["results"]
    table = lookup.recommend(["u1", "new"], k=4, histories={"new": given}).to_pylist()
    served = [
        (one["user_id"], item["item_id"], pytest.approx(item["score"]))
        for one in results
        for item in one["items"]
    ]
    assert served == [(row["user_id"], row["item_id"], row["score"]) for row in table]
    [reply] = asyncio.run(post("/v1/explain", {"user": "u1", "items": ["i3"]}))["items"]
    assert reply["user"]["repeats"] == pytest.approx(bonus_for(history_of("u1"))["i3"])
    assert sum(reply["user"].values()) == pytest.approx(reply["score"], abs=1e-4)
