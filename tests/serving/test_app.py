"""HTTP: what comes back, which status each fault has, and that no input gives 500."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError, MissingExtraError
from recsys.models import UserTowerSpec
from recsys.serving import Lookup
from recsys.serving.app import create_app, serve_app

MakeBundle = Callable[..., Bundle]

ODD = ["a/b", "100%", "🎈 fête", " blank ", "007", "NA", 'quote"\\', "../../etc/passwd", "%2F\n"]
LIMITS: dict[str, Any] = {
    "max_k": 50,
    "max_batch": 20,
    "max_body_bytes": 20_000,
    "popularity_alpha": 0.0,
}


class Client:
    """Requests to an application in this process, in one event loop."""

    def __init__(self, lookup: Lookup | None, **limits: float) -> None:
        app = create_app(lookup, **LIMITS | limits)
        self.runner = asyncio.Runner()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://test")

    def request(self, method: str, path: str, **body: Any) -> httpx.Response:
        return self.runner.run(self.client.request(method, path, **body))

    def get(self, path: str) -> httpx.Response:
        return self.request("GET", path)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.request("POST", path, **body)

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()


MakeClient = Callable[..., Client]


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """Give a function that makes clients; they are closed at the end."""
    made: list[Client] = []

    def make(lookup: Lookup | None, **limits: float) -> Client:
        made.append(Client(lookup, **limits))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def bundle(make_bundle: MakeBundle) -> Bundle:
    """Build a bundle of 9 users and 9 items with odd ids, titles, and every kind of input."""
    rows = [(ODD[n], ODD[(n + m) % 9]) for n in range(9) for m in range(4)]
    titles = [f"Title of {name}" for name in ODD[:8]] + [None]
    prices = [float(n) for n in range(8)] + [float("nan")]
    tags = [["x"], ["x", "y"], []] * 3
    hours = [float(n % 24) + 0.5 for n in range(36)]
    ages = [str(20 + n) for n in range(9)]
    return make_bundle(
        rows,
        items={"id": ODD, "title": titles, "price": prices},
        users={"id": ODD, "age": ages, "income": prices, "tags": tags},
        item_features=("price",),
        user_features=("age", "income", "tags"),
        context={"device": ["tv", "phone"] * 18, "hour": hours},
    )


@pytest.fixture
def lookup(bundle: Bundle) -> Lookup:
    return Lookup(bundle)


@pytest.fixture
def client(make_client: MakeClient, lookup: Lookup) -> Client:
    return make_client(lookup)


def test_health_names_the_bundle(client: Client, bundle: Bundle) -> None:
    reply = client.get("/healthz")
    assert reply.status_code == 200
    assert reply.json() == {
        "status": "ok",
        "bundle_id": bundle.bundle_id,
        "num_users": 9,
        "num_items": 9,
    }


def test_recommend_gives_what_the_lookup_gives_with_titles(client: Client, lookup: Lookup) -> None:
    reply = client.post("/v1/recommend", json={"users": ODD, "k": 3})
    assert reply.status_code == 200
    assert reply.json()["bundle_id"] == lookup.bundle.bundle_id
    results = reply.json()["results"]
    assert [result["user_id"] for result in results] == ODD
    table = lookup.recommend(ODD, k=3)
    items = [item for result in results for item in result["items"]]
    assert [item["item_id"] for item in items] == table["item_id"].to_pylist()
    scores = np.array([item["score"] for item in items], np.float32)
    assert scores.tolist() == table["score"].to_pylist()
    for item in items:
        known = item["item_id"] != ODD[8]
        assert item["columns"]["title"] == (f"Title of {item['item_id']}" if known else None)


def test_every_argument_reaches_the_lookup(client: Client, lookup: Lookup) -> None:
    histories = {"new": [ODD[0], ODD[1]], ODD[3]: [ODD[2]]}
    features = {"new": {"age": "21", "income": 2.5, "tags": ["y"]}}
    context = {"new": {"device": "tv"}, ODD[3]: {"device": "phone", "hour": 3}}
    request = {
        "users": ["new", ODD[3]],
        "k": 4,
        "exact": True,
        "exclude_seen": False,
        "popularity_alpha": -1.5,
        "histories": histories,
        "features": features,
        "context": context,
        "exclude": [ODD[5]],
        "allowed": [*ODD[:7], "unknown"],
    }
    results = client.post("/v1/recommend", json=request).json()["results"]
    table = lookup.recommend(
        ["new", ODD[3]],
        k=4,
        exact=True,
        exclude_seen=False,
        popularity_alpha=-1.5,
        histories=histories,
        features=pa.table({"user_id": ["new"], "age": ["21"], "income": [2.5], "tags": [["y"]]}),
        context=pa.table(
            {"user_id": ["new", ODD[3]], "device": ["tv", "phone"], "hour": [None, 3]}
        ),
        exclude=[ODD[5]],
        allowed=ODD[:7],
    )
    found = [item["item_id"] for result in results for item in result["items"]]
    assert found == table["item_id"].to_pylist()
    assert len(found) == 8
    assert ODD[5] not in found


def test_requests_that_name_no_dial_get_the_one_of_the_server(
    make_client: MakeClient, lookup: Lookup
) -> None:
    client, users = make_client(lookup, popularity_alpha=2.5), [ODD[0], "stranger"]
    for said, alpha in (({}, 2.5), ({"popularity_alpha": None}, 2.5), ({"popularity_alpha": 0}, 0)):
        reply = client.post("/v1/recommend", json={"users": users, "k": 3, **said})
        items = [item for result in reply.json()["results"] for item in result["items"]]
        table = lookup.recommend(users, k=3, popularity_alpha=alpha)
        assert [item["item_id"] for item in items] == table["item_id"].to_pylist()
        scores = np.array([item["score"] for item in items], np.float32)
        assert scores.tolist() == table["score"].to_pylist()
    with pytest.raises(ArgumentError, match="`popularity_alpha` must lie between -10 and 10"):
        make_client(lookup, popularity_alpha=11.0)


def test_each_user_asked_for_has_an_answer_in_order(client: Client) -> None:
    request = {"users": ["stranger", ODD[0], "stranger"], "k": 2, "allowed": [ODD[0]]}
    results = client.post("/v1/recommend", json=request).json()["results"]
    assert [result["user_id"] for result in results] == request["users"]
    assert [result["fallback"] for result in results] == [True, False, True]
    # The only allowed item is one that the known user has seen.
    assert [len(result["items"]) for result in results] == [1, 0, 1]


@pytest.mark.parametrize(
    "tower",
    [
        UserTowerSpec(history="attention", num_interests=3),
        UserTowerSpec(history="transformer", time_gaps=True),
    ],
)
def test_interests_and_times_of_a_model_do_not_show(
    make_bundle: MakeBundle, make_client: MakeClient, tower: UserTowerSpec
) -> None:
    rows = [(f"u{n}", f"i{(3 * n + m) % 9}") for n in range(9) for m in range(4)]
    lookup = Lookup(make_bundle(rows, user_tower=tower))
    given = {"new": ["i3", "i7"]}
    request = {"users": ["u3", "new"], "k": 4, "histories": given}
    results = make_client(lookup).post("/v1/recommend", json=request).json()["results"]
    table = lookup.recommend(["u3", "new"], k=4, histories=given)
    found = [(item["item_id"], item["score"]) for one in results for item in one["items"]]
    assert found == list(zip(table["item_id"].to_pylist(), table["score"].to_pylist(), strict=True))
    assert len(found) == 8


def test_neighbours_are_those_of_the_lookup(client: Client, lookup: Lookup) -> None:
    results = client.post("/v1/neighbours", json={"items": ODD[:2], "k": 3}).json()["results"]
    table = lookup.neighbours(ODD[:2], k=3)
    assert [result["item_id"] for result in results] == ODD[:2]
    found = [item["item_id"] for result in results for item in result["items"]]
    assert found == table["item_id"].to_pylist()
    assert results[0]["items"][0]["columns"]["title"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("recommend", b"", 422, "Invalid JSON"),
        ("recommend", b"{", 422, "Invalid JSON"),
        ("recommend", b"\xff\xfe", 422, "Invalid JSON"),
        ("recommend", b'{"users": ["\\ud800"]}', 422, "Invalid JSON"),
        ("recommend", b"[]", 422, "Input should be an object."),
        ("recommend", b"{}", 422, "`users`: Field required."),
        ("recommend", b'{"users": []}', 422, "`users`: List should have at least 1 item"),
        ("recommend", b'{"users": [7]}', 422, "`users.0`: Input should be a valid string."),
        ("recommend", b'{"users": [null]}', 422, "`users.0`: Input should be a valid string."),
        ("recommend", b'{"users": "u"}', 422, "`users`: Input should be a valid array."),
        ("recommend", b'{"users": ["u"], "k": 0}', 422, "`k`: Input should be greater than"),
        ("recommend", b'{"users": ["u"], "k": "5"}', 422, "`k`: Input should be a valid integer."),
        ("recommend", b'{"users": ["u"], "k": 1e999}', 422, "`k`: Input should be"),
        ("recommend", b'{"users": ["u"], "k": 51}', 422, "`k` must be at most 50, got 51."),
        ("recommend", b'{"users": ["u"], "popularity_alpha": 10.5}', 422, "equal to 10."),
        ("recommend", b'{"users": ["u"], "popularity_alpha": -11}', 422, "equal to -10."),
        ("recommend", b'{"users": ["u"], "popularity_alpha": NaN}', 422, "finite"),
        ("recommend", b'{"users": ["u"], "popularity_alpha": 1e999}', 422, "finite"),
        ("recommend", b'{"users": ["u"], "popularity_alpha": "1"}', 422, "valid number."),
        ("recommend", b'{"users": ["u"], "file": "x"}', 422, "`file`: Extra inputs"),
        ("neighbours", b'{"items": ["007"], "popularity_alpha": 1}', 422, "Extra inputs"),
        (
            "recommend",
            b'{"users": ["u"], "context": {"u": {"colour": "red"}}}',
            422,
            "The table of context has the column 'colour'; the model knows device, hour.",
        ),
        (
            "recommend",
            b'{"users": ["u", "v"], "context": {"u": {"device": "tv"}, "v": {"device": 1}}}',
            422,
            "`context`: values of 'device' do not fit together.",
        ),
        (
            "recommend",
            b'{"users": ["u"], "context": {"u": {"user_id": "v"}}}',
            422,
            "`context` must not hold a column user_id",
        ),
        ("recommend", b'{"users": ["u"], "context": {"u": {"device": NaN}}}', 422, "finite"),
        ("neighbours", b'{"items": ["nope"]}', 404, "There is no item 'nope' with a vector."),
        ("neighbours", b'{"items": ["007"], "users": ["u"]}', 422, "`users`: Extra inputs"),
    ],
)
def test_a_bad_request_gets_its_status_and_one_sentence(
    client: Client, path: str, body: bytes, status: int, words: str
) -> None:
    reply = client.post(f"/v1/{path}", content=body)
    assert reply.status_code == status
    assert list(reply.json()) == ["error"]
    assert words in reply.json()["error"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("histories", ["007"]), ("features", {"income": 2.5}), ("context", {"device": "tv"})],
)
def test_what_is_said_of_a_user_who_is_not_asked_about_is_refused(
    client: Client, field: str, value: Any
) -> None:
    said = {"u": value, "U": value}
    reply = client.post("/v1/recommend", json={"users": ["u"], field: said})
    assert reply.status_code == 422
    assert reply.json() == {"error": f"`{field}` holds the user 'U', not in `users`."}
    assert client.post("/v1/recommend", json={"users": ["U", "u"], field: said}).status_code == 200


def test_a_number_beyond_float32_is_refused_with_its_column(client: Client) -> None:
    for field, column in (("features", "income"), ("context", "hour")):
        body = {"users": ["u"], field: {"u": {column: 1e300}}}
        reply = client.post("/v1/recommend", json=body)
        assert reply.status_code == 422
        assert f"'{column}' must hold numbers near those" in reply.json()["error"]
        assert "got 1e+300" in reply.json()["error"]


def test_too_many_queries_are_refused(client: Client) -> None:
    reply = client.post("/v1/recommend", json={"users": [str(n) for n in range(21)]})
    assert reply.status_code == 422
    assert reply.json() == {"error": "At most 20 queries go at once, got 21."}


@pytest.mark.parametrize("stated", [True, False])
def test_a_body_above_the_limit_is_not_read(
    make_client: MakeClient, lookup: Lookup, stated: bool
) -> None:
    client = make_client(lookup, max_body_bytes=1000)
    read = []

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(100):
            read.append(number)
            yield b" " * 100

    body = b" " * 10_000 if stated else pieces()
    reply = client.post("/v1/recommend", content=body)
    assert reply.status_code == 413
    assert reply.json() == {"error": "A request must be below 1000 bytes."}
    assert len(read) <= 12  # of 100 pieces


def test_without_a_bundle_everything_is_503(make_client: MakeClient) -> None:
    client = make_client(None)
    assert client.get("/healthz").status_code == 503
    reply = client.post("/v1/recommend", json={"users": ["u"]})
    assert (reply.status_code, reply.json()) == (503, {"error": "No bundle is loaded."})


def test_what_is_not_foreseen_is_500_without_detail(
    make_client: MakeClient,
    lookup: Lookup,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def break_down(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(lookup, "recommend_blocks", break_down)
    reply = make_client(lookup).post("/v1/recommend", json={"users": ["u"]})
    assert reply.status_code == 500
    assert "secret" not in reply.text
    assert "secret of the house" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/v1/recommend", 405), ("GET", "/docs", 404)],
)
def test_a_route_that_is_none_says_so(client: Client, method: str, path: str, status: int) -> None:
    reply = client.request(method, path)
    assert reply.status_code == status
    assert reply.json() == {"error": f"There is no {method} {path}."}


def test_the_schema_of_requests_is_published(client: Client) -> None:
    schema = client.get("/openapi.json").json()
    body = schema["paths"]["/v1/recommend"]["post"]["requestBody"]["content"]
    assert "users" in body["application/json"]["schema"]["properties"]


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
    },
)
FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FUZZ
@given(request=REQUESTS, path=st.sampled_from(["recommend", "neighbours"]))
def test_no_json_gives_500(client: Client, request: dict[str, Any], path: str) -> None:
    request = {k: v for k, v in request.items() if path == "recommend" or k in "items k exact"}
    reply = client.post(f"/v1/{path}", content=json.dumps(request).encode())
    assert reply.status_code in (200, 404, 422), reply.text
    json.loads(reply.content)


@FUZZ
@given(users=IDS.filter(len), rest=REQUESTS, rows=ROWS)
def test_no_request_that_is_nearly_right_gives_500(
    client: Client, users: list[str], rest: dict[str, Any], rows: dict[str, Any]
) -> None:
    histories = rest.get("histories")
    users = [*users, *rows, *(histories if isinstance(histories, dict) else ())]
    right = {"users": users, "k": 3, "context": rows, "features": rows}
    keep = {
        k: v
        for k, v in rest.items()
        if k in ("histories", "exclude", "allowed", "popularity_alpha")
    }
    reply = client.post("/v1/recommend", content=json.dumps(right | keep).encode())
    assert reply.status_code in (200, 422), reply.text
    if reply.status_code == 200:
        assert [result["user_id"] for result in reply.json()["results"]] == users


@FUZZ
@given(body=st.binary(max_size=60), path=st.sampled_from(["recommend", "neighbours"]))
def test_no_bytes_give_500(client: Client, body: bytes, path: str) -> None:
    assert client.post(f"/v1/{path}", content=body).status_code == 422


def test_deep_and_long_bodies_are_refused(client: Client) -> None:
    for body in (b"[" * 10_000, b'{"users":' * 1_000, b'{"k":' + b"9" * 10_000 + b"}"):
        assert client.post("/v1/recommend", content=body).status_code == 422


def test_a_missing_extra_is_named(lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(lookup, **LIMITS)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    words = r"Serving needs .*: pip install 'recsys-retrieval\[serve\]'\."
    with pytest.raises(MissingExtraError, match=words):
        create_app(lookup, **LIMITS)
    with pytest.raises(MissingExtraError, match=words):
        serve_app(app, host="127.0.0.1", port=0)


def test_an_address_that_is_taken_is_named(lookup: Lookup) -> None:
    app = create_app(lookup, **LIMITS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=rf"127\.0\.0\.1:{port} cannot be used"):
            serve_app(app, host="127.0.0.1", port=port)


def test_a_server_answers_and_stops_when_told(bundle: Bundle, tmp_path: Path) -> None:
    code = """
import logging, sys
from pathlib import Path
from recsys.bundle import read_bundle
from recsys.serving import Lookup
from recsys.serving.app import create_app, serve_app
logging.basicConfig(level=logging.INFO, format="%(message)s")
limits = {"max_k": 10, "max_batch": 9, "max_body_bytes": 999, "popularity_alpha": 0.0}
app = create_app(Lookup(read_bundle(Path(sys.argv[1]))), **limits)
serve_app(app, host="127.0.0.1", port=0)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(bundle.path)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = process.stderr.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        request = urllib.request.Request(
            f"{address}/v1/recommend", json.dumps({"users": ["🎈 fête"], "k": 2}).encode()
        )
        deadline = time.monotonic() + 30
        reply = None
        while reply is None:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    reply = json.load(answer)
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert len(reply["results"][0]["items"]) == 2
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
