"""HTTP: which status and which sentence each fault has."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from recsys.serving import Lookup

MakeClient = Callable[..., Any]


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
        (
            "recommend",
            b'{"users": ["u"], "where": 5}',
            422,
            "`where`: Input should be a valid string",
        ),
        (
            "recommend",
            b'{"users": ["u"], "where": "cost < 5"}',
            422,
            "`where`, position 1: there is no column 'cost'; there are item_id, title, price.",
        ),
        (
            "neighbours",
            b'{"items": ["007"], "where": "price <"}',
            422,
            "position 8: expected a value",
        ),
        (
            "neighbours",
            b'{"items": ["007"], "where": "' + b"x" * 4001 + b'"}',
            422,
            "`where`: String should have at most 4000 characters",
        ),
        ("neighbours", b'{"items": ["nope"]}', 404, "There is no item 'nope' with a vector."),
        ("neighbours", b'{"items": ["007"], "users": ["u"]}', 422, "`users`: Extra inputs"),
    ],
)
def test_a_bad_request_gets_its_status_and_one_sentence(
    client: Any, path: str, body: bytes, status: int, words: str
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
    client: Any, field: str, value: Any
) -> None:
    said = {"u": value, "U": value}
    reply = client.post("/v1/recommend", json={"users": ["u"], field: said})
    assert reply.status_code == 422
    assert reply.json() == {"error": f"`{field}` holds the user 'U', not in `users`."}
    assert client.post("/v1/recommend", json={"users": ["U", "u"], field: said}).status_code == 200


def test_a_number_beyond_float32_is_refused_with_its_column(client: Any) -> None:
    for field, column in (("features", "income"), ("context", "hour")):
        body = {"users": ["u"], field: {"u": {column: 1e300}}}
        reply = client.post("/v1/recommend", json=body)
        assert reply.status_code == 422
        assert f"'{column}' must hold numbers near those" in reply.json()["error"]
        assert "got 1e+300" in reply.json()["error"]


def test_too_many_queries_are_refused(client: Any) -> None:
    reply = client.post("/v1/recommend", json={"users": [str(n) for n in range(21)]})
    assert reply.status_code == 422
    assert reply.json() == {"error": "At most 20 queries go at once, got 21."}


@pytest.mark.parametrize("stated", [True, False])
def test_a_body_above_the_limit_is_not_read(
    make_client: MakeClient, odd_lookup: Lookup, stated: bool
) -> None:
    client = make_client(odd_lookup, max_body_bytes=1000)
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
    odd_lookup: Lookup,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def break_down(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(odd_lookup, "recommend_blocks", break_down)
    reply = make_client(odd_lookup).post("/v1/recommend", json={"users": ["u"]})
    assert reply.status_code == 500
    assert "secret" not in reply.text
    assert "secret of the house" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/v1/recommend", 405), ("GET", "/docs", 404)],
)
def test_a_route_that_is_none_says_so(client: Any, method: str, path: str, status: int) -> None:
    reply = client.request(method, path)
    assert reply.status_code == status
    assert reply.json() == {"error": f"There is no {method} {path}."}
