"""POST /v1/explain: what the lookup gives, with titles; limits; and that no input gives 500."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recsys.bundle import Bundle
from recsys.models import UserTowerSpec
from recsys.serving import Lookup
from recsys.serving.app import create_app

MakeBundle = Callable[..., Bundle]
Post = Callable[..., httpx.Response]

IDS = ["a/b", "100%", "🎈 fête", "007", 'quote"\\', "NA"]
ROWS = [(IDS[n], IDS[(n * m + m) % 6]) for n in range(6) for m in range(5)]


@pytest.fixture
def lookup(make_bundle: MakeBundle) -> Lookup:
    """Build a bundle of 6 users and 6 items with odd ids, and every kind of input."""
    prices = [*[float(n) for n in range(5)], float("nan")]
    return Lookup(
        make_bundle(
            ROWS,
            items={"id": IDS, "title": [*[f"Title {n}" for n in range(5)], None], "price": prices},
            users={"id": IDS, "age": [str(20 + n) for n in range(6)]},
            item_features=("price",),
            user_features=("age",),
            context={"device": ["tv", "phone"] * 15},
            exclude_seen=False,
            item_bias=True,
            user_tower=UserTowerSpec(history="attention", num_interests=2),
        )
    )


@pytest.fixture
def post(lookup: Lookup) -> Iterator[Post]:
    """Give a function that posts to the application in this process."""
    limits: dict[str, Any] = {"max_k": 12, "max_batch": 4, "max_body_bytes": 2000}
    app = create_app(lookup, popularity_alpha=0.0, **limits)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    client = httpx.AsyncClient(transport=transport, base_url="http://test")
    with asyncio.Runner() as runner:
        yield lambda **body: runner.run(client.post("/v1/explain", **body))
        runner.run(client.aclose())


def test_the_reply_is_what_the_lookup_gives_with_titles(post: Post, lookup: Lookup) -> None:
    reply = post(json={"user": "007", "items": ["NA", "a/b"], "num_history": 2})
    assert reply.status_code == 200
    body, found = reply.json(), lookup.explain("007", ["NA", "a/b"], num_history=2)
    assert (body["bundle_id"], body["user_id"]) == (lookup.bundle.bundle_id, "007")
    assert [item["item_id"] for item in body["items"]] == ["NA", "a/b"]
    titles = {"NA": None, "a/b": "Title 0"}
    for item, one in zip(body["items"], found, strict=True):
        expected = one.items.to_pylist()[0]
        assert {key: item[key] for key in expected} == expected
        assert item["columns"]["title"] == titles[item["item_id"]]
        history = [
            {"item_id" if key == "history_item_id" else key: value for key, value in row.items()}
            for row in one.history.drop_columns("item_id").to_pylist()
        ]
        met = [{k: v for k, v in row.items() if k != "columns"} for row in item["history"]]
        assert met == history
        assert len(history) == 2
        for side in ("user", "item"):
            pieces = {
                row["piece"]: row["contribution"]
                for row in one.pieces.to_pylist()
                if row["side"] == side
            }
            assert list(item[side].items()) == list(pieces.items())


def test_without_items_the_best_ones_are_explained(post: Post, lookup: Lookup) -> None:
    items = post(json={"user": "NA", "k": 2}).json()["items"]
    best = lookup.recommend(["NA"], k=2)["item_id"].to_pylist()
    assert [item["item_id"] for item in items] == best
    other = {"user": "NA", "k": 1, "where": f"item_id != {best[0]!r}"}
    assert post(json=other).json()["items"][0]["item_id"] == best[1]


def test_every_argument_reaches_the_lookup(post: Post) -> None:
    known = {"history": ["007", "NA"], "features": {"age": "21"}, "context": {"device": "tv"}}
    item = post(json={"user": "new", "items": ["100%"], **known}).json()["items"][0]
    assert not item["fallback"]
    assert {row["item_id"] for row in item["history"]} == {"007", "NA"}
    assert item["user"]["features.age"] != 0 != item["user"]["context.device"]
    nothing = post(json={"user": "new", "items": ["100%"]}).json()["items"][0]
    assert nothing["fallback"]
    assert nothing["history"] == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 422, "Invalid JSON"),
        (b"{}", 422, "`user`: Field required."),
        (b'{"user": 7}', 422, "`user`: Input should be a valid string."),
        (b'{"user": "u", "items": ["a"], "where": "x = 1"}', 422, "cannot stand beside `items`"),
        (b'{"user": "u", "where": "x = 1"}', 422, "there is no column 'x'"),
        (b'{"user": "u", "items": []}', 422, "`items`: List should have at least 1 item"),
        (b'{"user": "u", "k": 0}', 422, "`k`: Input should be greater than"),
        (b'{"user": "u", "k": 13}', 422, "`k` must be at most 12, got 13."),
        (b'{"user": "u", "num_history": 13}', 422, "`num_history` must be at most 12, got 13."),
        (b'{"user": "u", "num_history": -1}', 422, "`num_history`: Input should be greater"),
        (b'{"user": "u", "items": ["a", "b", "c", "d", "e"]}', 422, "At most 4 queries go at once"),
        (b'{"user": "u", "items": ["nope"]}', 404, "There is no item 'nope' with a vector."),
        (b'{"user": "u", "file": "x"}', 422, "`file`: Extra inputs"),
        (b'{"user": "u", "context": {"x": 1}}', 422, "has the column 'x'; the model knows device."),
        (b'{"user": "u", "features": {"user_id": "v"}}', 422, "must not hold a column user_id"),
    ],
)
def test_a_bad_request_gets_its_status_and_one_sentence(
    post: Post, body: bytes, status: int, words: str
) -> None:
    reply = post(content=body)
    assert reply.status_code == status
    assert list(reply.json()) == ["error"]
    assert words in reply.json()["error"]


def test_a_body_above_the_limit_is_refused(post: Post) -> None:
    assert post(content=b" " * 2001).status_code == 413


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
TREES = LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.text(max_size=2), LEAVES)
LISTS = st.lists(st.sampled_from(IDS) | st.text(max_size=3), max_size=4)
COLUMNS = st.sampled_from(["device", "age", "user_id", "x"])
VALUES = st.dictionaries(COLUMNS, LEAVES | st.lists(LEAVES, max_size=2), max_size=2)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    request=st.fixed_dictionaries(
        {"user": st.sampled_from([*IDS, "new"]) | TREES},
        optional={
            "items": LISTS | TREES,
            "k": st.integers(-1, 13) | TREES,
            "num_history": st.integers(-1, 13) | TREES,
            "history": LISTS | TREES,
            "features": VALUES | TREES,
            "context": VALUES | TREES,
        },
    )
)
def test_no_json_gives_500(post: Post, request: dict[str, Any]) -> None:
    reply = post(content=json.dumps(request).encode())
    assert reply.status_code in (200, 404, 422), reply.text
    json.loads(reply.content)
