"""HTTP: no input gives 500."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# As `odd_bundle` has them.
ODD = ["a/b", "100%", "🎈 fête", " blank ", "007", "NA", 'quote"\\', "../../etc/passwd", "%2F\n"]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*ODD, "tv", "device", "age"])
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
IDS = st.lists(st.sampled_from(ODD) | st.text(max_size=4), max_size=4)
COLUMNS = st.sampled_from(["device", "hour", "age", "income", "tags", "user_id", "x"])
ROWS = st.dictionaries(
    st.sampled_from([*ODD, "new"]),
    st.dictionaries(COLUMNS, LEAVES | st.lists(LEAVES, max_size=2), max_size=2),
    max_size=3,
)
WORDS = ["item_id", "title", "price", "cost", "and", "or", "not", "in", "contains", "is", "null"]
WORDS += [*"=<>()[],`'\"\\", "!=", "<=", "5", "-1e999", "1e300", "9" * 5000, "x", "'a b'", "\0"]
WHERE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "users": IDS | TREES,
        "items": IDS | TREES,
        "k": st.integers(-2, 60) | TREES,
        "exact": st.booleans() | TREES,
        "exclude_seen": st.booleans() | TREES,
        "popularity_alpha": st.floats(-11, 11) | TREES,
        "histories": st.dictionaries(st.sampled_from([*ODD, "new"]), IDS, max_size=2) | TREES,
        "features": ROWS | TREES,
        "context": ROWS | TREES,
        "exclude": IDS | TREES,
        "allowed": IDS | TREES,
        "where": WHERE | TREES,
    },
)
FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FUZZ
@given(request=REQUESTS, path=st.sampled_from(["recommend", "neighbours"]))
def test_no_json_gives_500(client: Any, request: dict[str, Any], path: str) -> None:
    request = {k: v for k, v in request.items() if path == "recommend" or k in "items k exact"}
    reply = client.post(f"/v1/{path}", content=json.dumps(request).encode())
    assert reply.status_code in (200, 404, 422), reply.text
    json.loads(reply.content)


@FUZZ
@given(users=IDS.filter(len), rest=REQUESTS, rows=ROWS)
def test_no_request_that_is_nearly_right_gives_500(
    client: Any, users: list[str], rest: dict[str, Any], rows: dict[str, Any]
) -> None:
    histories = rest.get("histories")
    users = [*users, *rows, *(histories if isinstance(histories, dict) else ())]
    right = {"users": users, "k": 3, "context": rows, "features": rows}
    keep = {
        k: v
        for k, v in rest.items()
        if k in ("histories", "exclude", "allowed", "popularity_alpha", "where")
    }
    reply = client.post("/v1/recommend", content=json.dumps(right | keep).encode())
    assert reply.status_code in (200, 422), reply.text
    if reply.status_code == 200:
        assert [result["user_id"] for result in reply.json()["results"]] == users


@FUZZ
@given(body=st.binary(max_size=60), path=st.sampled_from(["recommend", "neighbours"]))
def test_no_bytes_give_500(client: Any, body: bytes, path: str) -> None:
    assert client.post(f"/v1/{path}", content=body).status_code == 422


def test_deep_and_long_bodies_are_refused(client: Any) -> None:
    for body in (b"[" * 10_000, b'{"users":' * 1_000, b'{"k":' + b"9" * 10_000 + b"}"):
        assert client.post("/v1/recommend", content=body).status_code == 422
