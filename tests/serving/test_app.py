"""HTTP: what comes back is what the lookup gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError
from recsys.models import UserTowerSpec
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]
MakeClient = Callable[..., Any]

# As `odd_bundle` has them.
ODD = ["a/b", "100%", "🎈 fête", " blank ", "007", "NA", 'quote"\\', "../../etc/passwd", "%2F\n"]


def test_health_names_the_bundle(client: Any, odd_bundle: Bundle) -> None:
    reply = client.get("/healthz")
    assert reply.status_code == 200
    assert reply.json() == {
        "status": "ok",
        "bundle_id": odd_bundle.bundle_id,
        "num_users": 9,
        "num_items": 9,
    }


def test_recommend_gives_what_the_lookup_gives_with_titles(client: Any, odd_lookup: Lookup) -> None:
    reply = client.post("/v1/recommend", json={"users": ODD, "k": 3})
    assert reply.status_code == 200
    assert reply.json()["bundle_id"] == odd_lookup.bundle.bundle_id
    results = reply.json()["results"]
    assert [result["user_id"] for result in results] == ODD
    table = odd_lookup.recommend(ODD, k=3)
    items = [item for result in results for item in result["items"]]
    assert [item["item_id"] for item in items] == table["item_id"].to_pylist()
    scores = np.array([item["score"] for item in items], np.float32)
    assert scores.tolist() == table["score"].to_pylist()
    for item in items:
        known = item["item_id"] != ODD[8]
        assert item["columns"]["title"] == (f"Title of {item['item_id']}" if known else None)


def test_every_argument_reaches_the_lookup(client: Any, odd_lookup: Lookup) -> None:
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
        "where": "price >= 1 and price != 2",
    }
    results = client.post("/v1/recommend", json=request).json()["results"]
    table = odd_lookup.recommend(
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
        allowed=[ODD[1], ODD[3], ODD[4], ODD[6]],  # prices are 0, 1, 2, ...; 5 is excluded
    )
    found = [item["item_id"] for result in results for item in result["items"]]
    assert found == table["item_id"].to_pylist()
    assert len(found) == 8
    assert ODD[5] not in found


def test_neighbours_pass_the_expression(client: Any, odd_lookup: Lookup) -> None:
    request = {"items": [ODD[0]], "k": 3, "where": "price > 4 or title is null"}
    [result] = client.post("/v1/neighbours", json=request).json()["results"]
    expected = odd_lookup.neighbours([ODD[0]], k=3, allowed=ODD[5:])["item_id"].to_pylist()
    assert [item["item_id"] for item in result["items"]] == expected


def test_requests_that_name_no_dial_get_the_one_of_the_server(
    make_client: MakeClient, odd_lookup: Lookup
) -> None:
    client, users = make_client(odd_lookup, popularity_alpha=2.5), [ODD[0], "stranger"]
    for said, alpha in (({}, 2.5), ({"popularity_alpha": None}, 2.5), ({"popularity_alpha": 0}, 0)):
        reply = client.post("/v1/recommend", json={"users": users, "k": 3, **said})
        items = [item for result in reply.json()["results"] for item in result["items"]]
        table = odd_lookup.recommend(users, k=3, popularity_alpha=alpha)
        assert [item["item_id"] for item in items] == table["item_id"].to_pylist()
        scores = np.array([item["score"] for item in items], np.float32)
        assert scores.tolist() == table["score"].to_pylist()
    with pytest.raises(ArgumentError, match="`popularity_alpha` must lie between -10 and 10"):
        make_client(odd_lookup, popularity_alpha=11.0)


def test_each_user_asked_for_has_an_answer_in_order(client: Any) -> None:
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


def test_neighbours_are_those_of_the_lookup(client: Any, odd_lookup: Lookup) -> None:
    results = client.post("/v1/neighbours", json={"items": ODD[:2], "k": 3}).json()["results"]
    table = odd_lookup.neighbours(ODD[:2], k=3)
    assert [result["item_id"] for result in results] == ODD[:2]
    found = [item["item_id"] for result in results for item in result["items"]]
    assert found == table["item_id"].to_pylist()
    assert results[0]["items"][0]["columns"]["title"]


def test_the_schema_of_requests_is_published(client: Any) -> None:
    schema = client.get("/openapi.json").json()
    body = schema["paths"]["/v1/recommend"]["post"]["requestBody"]["content"]
    assert "users" in body["application/json"]["schema"]["properties"]
