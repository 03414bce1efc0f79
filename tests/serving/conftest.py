"""Bundles of untrained towers over small logs, as lookups need no good model; HTTP over one."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.data import (
    FeatureOptions,
    FilterSettings,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
)
from recsys.index import IndexSettings
from recsys.serving import Lookup
from recsys.serving.app import create_app
from tests.untrained import write_untrained

MakeBundle = Callable[..., Bundle]

ODD = ["a/b", "100%", "🎈 fête", " blank ", "007", "NA", 'quote"\\', "../../etc/passwd", "%2F\n"]
LIMITS: dict[str, Any] = {
    "max_k": 50,
    "max_batch": 20,
    "max_body_bytes": 20_000,
    "popularity_alpha": 0.0,
}


def raw_log(rows: list[tuple[str, str]], **context: list[str]) -> RawLog:
    """Make a log of (user, item), one second apart."""
    users, items = zip(*rows, strict=True)
    table = pa.table(
        {
            "user_id": pa.array(users, pa.large_string()),
            "item_id": pa.array(items, pa.large_string()),
            "timestamp": pa.array([1_700_000_000_000_000 + n * 10**6 for n in range(len(rows))]),
            **context,
        }
    )
    return RawLog(table, "time", {}, table.num_rows, [])


def raw_entities(columns: dict[str, list[Any]]) -> RawEntities:
    """Make a table of items or users, whose column `id` holds text."""
    ids = {"id": pa.array(columns["id"], pa.large_string())}
    return RawEntities(pa.table({**columns, **ids}), {}, [])


@pytest.fixture
def make_bundle(tmp_path: Path) -> MakeBundle:
    """Build a bundle of (user, item) events, all of them in the training part."""

    def make(
        rows: list[tuple[str, str]],
        *,
        items: dict[str, list[Any]] | None = None,
        users: dict[str, list[Any]] | None = None,
        item_features: tuple[str, ...] = (),
        item_options: dict[str, FeatureOptions] | None = None,
        user_features: tuple[str, ...] = (),
        context: dict[str, list[str]] | None = None,
        index: IndexSettings | None = None,
        exclude_seen: bool = True,
        **spec: Any,
    ) -> Bundle:
        path = prepare_dataset(
            raw_log(rows, **(context or {})),
            items=None if items is None else raw_entities(items),
            users=None if users is None else raw_entities(users),
            output=tmp_path / "dataset",
            filters=FilterSettings(duplicates="keep_all"),
            split=SplitSettings(rule="given"),
            seed=0,
            exclude_seen=exclude_seen,
            item_features=dict.fromkeys(item_features, FeatureOptions()) | (item_options or {}),
            user_features=dict.fromkeys(user_features, FeatureOptions()),
            context_features=dict.fromkeys(context or (), FeatureOptions()),
        )
        return write_untrained(tmp_path / "bundle", path, index, embedding_dim=16, **spec)

    return make


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
def odd_bundle(make_bundle: MakeBundle) -> Bundle:
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
def odd_lookup(odd_bundle: Bundle) -> Lookup:
    """Load that bundle."""
    return Lookup(odd_bundle)


@pytest.fixture
def client(make_client: MakeClient, odd_lookup: Lookup) -> Client:
    """Give a client of an application over that bundle."""
    return make_client(odd_lookup)
