"""Lookups in a bundle with other items: every way in, with items that are new or withdrawn."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from recsys.bundle import Bundle
from recsys.models import UserTowerSpec
from recsys.serving import Lookup
from recsys.serving.app import create_app

MakeBundle = Callable[..., Bundle]
Update = Callable[..., Bundle]
MakeItems = Callable[..., pa.Table]
NEW, GONE = ["new1", "new2"], ["i3", "i4"]


def changed(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems, **spec: Any
) -> tuple[Lookup, Lookup]:
    """Give lookups in a bundle and in its update: new items, i1 replaced, others withdrawn."""
    bundle = make_bundle(**spec)
    items = make_items(["i1", *NEW], seed=7)
    return Lookup(bundle), Lookup(update(bundle, items, remove=GONE))


def test_items_are_described_and_embedded_as_they_are_now(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    before, after = changed(make_bundle, update, make_items)
    items = make_items(["i1", *NEW], seed=7)
    shown = after.describe_items(["new2", "i1", "i3"])
    assert shown["title"].to_pylist() == ["Title new2", "Title i1", "Title i3"]
    assert shown["genre"].to_pylist()[:2] == items["genre"].take([2, 0]).to_pylist()
    table = items.rename_columns(["item_id", *items.column_names[1:]])
    expected = before.embed_items(table)
    assert after.embed_items(["i1", *NEW]).equals(expected)
    assert after.embed_items(table).equals(expected)
    every = after.embed_items()["item_id"].to_pylist()
    assert set(every) == {f"i{n}" for n in range(30)} - set(GONE) | set(NEW)
    # An item as it was has the bytes that it had, a withdrawn one too, when it is named.
    assert after.embed_items(["i2", "i3"]).equals(before.embed_items(["i2", "i3"]))


def test_where_reads_the_new_columns(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    _, after = changed(make_bundle, update, make_items)
    shown = after.describe_items([f"i{n}" for n in range(30)] + NEW).to_pylist()
    live = [row for row in shown if row["item_id"] not in GONE]
    for genre in ("g0", "g1", "g2", "g3"):
        expected = {row["item_id"] for row in live if row["genre"] == genre}
        for settings in ({}, {"exact": True}, {"popularity_alpha": 0.5}):
            found = after.recommend(["u1"], k=99, where=f"genre = {genre}", **settings)
            assert set(found["item_id"].to_pylist()) == expected
    found = after.recommend(["nobody"], k=99, where="item_id in [new1, i3, i2]")
    assert found["item_id"].to_pylist() == ["i2", "new1"]
    assert found["score"].to_pylist()[1] == 0  # nobody chose it in training


def test_neighbours_of_a_new_and_of_a_withdrawn_item_are_given(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    _, after = changed(make_bundle, update, make_items, item_bias=True)
    found = after.neighbours(["new1", "i3"], k=30, exact=True)
    vectors = after.embed_items([f"i{n}" for n in range(30)] + NEW)
    ids = vectors["item_id"].to_pylist()
    plain = np.array(vectors["vector"].to_pylist())
    for query in ("new1", "i3"):
        own = plain[ids.index(query)].copy()
        own[8] = 0  # the bias
        scores = dict(zip(ids, plain @ own, strict=True))
        for one in {query, *GONE}:
            del scores[one]
        got = found.filter(pc.equal(found["query_item_id"], query))["item_id"].to_pylist()
        assert got == sorted(scores, key=lambda one: -scores[one])[:30]


def test_the_dial_moves_new_items_as_those_that_nobody_chose(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    before, after = changed(make_bundle, update, make_items)
    plain = after.recommend(["u1"], k=99, exact=True).to_pandas().set_index("item_id")["score"]
    dialled = after.recommend(["u1"], k=99, popularity_alpha=2.0).to_pandas()
    moved = dialled.set_index("item_id")["score"] - plain
    assert set(dialled["item_id"]) == set(plain.index)
    counts = dict(
        zip(
            before.bundle.items.vocabulary.ids.to_pylist(),
            before.bundle.items.counts.tolist(),
            strict=True,
        )
    )
    never = [one for one in plain.index if counts.get(one, 0) == 0]
    assert set(NEW) < set(never)
    assert np.ptp(moved[never]) < 1e-5
    assert (moved[never].min() > moved.drop(never)).all()


@pytest.mark.parametrize("table", ["own", "tower"])
def test_new_items_in_histories_count_as_seen_and_are_read_by_their_features(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems, table: str
) -> None:
    tower = UserTowerSpec(history_length=5, history_table=table)
    before, after = changed(make_bundle, update, make_items, user_tower=tower)
    histories = {"a": ["i2", "i5"], "b": ["i2", "i5", *NEW], "c": NEW, "d": GONE}
    found = after.recommend(histories=histories, k=99, exclude_seen=True).to_pandas()
    of_b = set(found[found["user_id"] == "b"]["item_id"])
    assert of_b == {f"i{n}" for n in range(30)} - {"i2", "i5", *GONE}
    vectors = after.embed_users(histories=histories)["vector"].to_pylist()
    reads_features = table == "tower"
    assert (vectors[0] != vectors[1]) == reads_features
    nothing_read = found.groupby("user_id")["fallback"].all().to_dict()
    assert nothing_read == {"a": False, "b": False, "c": not reads_features, "d": False}
    # Withdrawn items say of a user what they said before.
    past = before.embed_users(histories={"d": GONE})["vector"].to_pylist()
    assert vectors[3] == past[0]


def test_a_bonus_goes_to_a_new_item_that_the_user_had_and_to_no_withdrawn_one(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    _, after = changed(make_bundle, update, make_items, repeats_weight=3.0, repeats_decay=0.5)
    given: dict[str, Any] = {"histories": {"a": ["i2", "new1", "i3"]}, "exclude_seen": False}
    plain = after.recommend(["a"], k=99, **given).to_pandas().set_index("item_id")["score"]
    vectors = {
        row["item_id"]: np.array(row["vector"])
        for row in after.embed_items(["i2", "i9", "new1"]).to_pylist()
    }
    user = np.array(after.embed_users(histories=given["histories"])["vector"][0].as_py())
    # Ages 2, 1 and 0: the withdrawn item is the newest.
    bonus = {"i2": 3 * np.log1p(0.25), "new1": 3 * np.log1p(0.5), "i9": 0.0}
    for one, added in bonus.items():
        assert plain[one] == pytest.approx(user @ vectors[one] + added, abs=1e-5)
    assert "i3" not in plain.index


def test_explanations_add_up_for_new_withdrawn_and_given_vectors(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    bundle = make_bundle(item_bias=True)
    items = make_items(["i1", "new1"], seed=7)
    own = pa.array([[0.5] * 9, None], pa.list_(pa.float32()))
    updated = update(bundle, items.append_column("vector", own), remove=["i3"])
    after = Lookup(updated)
    found = after.explain("u1", ["i1", "new1", "i3"], histories={"u1": ["i2", "new1", "i3"]})
    sums: dict[tuple[str, str], float] = {}
    for row in found.pieces.to_pylist():
        key = (row["item_id"], row["side"])
        sums[key] = sums.get(key, 0.0) + row["contribution"]
    scores = dict(
        zip(found.items["item_id"].to_pylist(), found.items["score"].to_pylist(), strict=True)
    )
    assert scores.keys() == {"i1", "new1", "i3"}
    for (item, _), total in sums.items():
        assert total == pytest.approx(scores[item], abs=1e-5)
    pieces = {(row["item_id"], row["side"], row["piece"]): row for row in found.pieces.to_pylist()}
    assert abs(pieces["new1", "item", "id"]["contribution"]) < 1e-6  # it has none
    # A vector that was given is not what the tower makes of the features.
    assert abs(pieces["i1", "item", "remainder"]["contribution"]) > 1e-3
    tower = after.embed_items(items.rename_columns(["item_id", *items.column_names[1:]]))
    user = np.array(
        after.embed_users(["u1"], histories={"u1": ["i2", "new1", "i3"]})["vector"][0].as_py()
    )
    of_tower = float(user @ np.array(tower["vector"][0].as_py()))
    expected = scores["i1"] - of_tower
    stored = float(after.embed_items(["i1"])["vector"][0].as_py()[8])
    drawn = stored - float(tower["vector"][0].as_py()[8])
    assert pieces["i1", "item", "remainder"]["contribution"] == pytest.approx(
        expected - drawn, abs=1e-5
    )


def test_http_gives_new_items_and_counts_those_that_are_there(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems, tmp_path: Path
) -> None:
    _, after = changed(make_bundle, update, make_items)
    app = create_app(after, max_k=50, max_batch=9, max_body_bytes=9_000, popularity_alpha=0.0)

    async def ask() -> tuple[Any, Any, Any]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            health = await client.get("/healthz")
            asked = {"users": ["u1", "nobody"], "k": 50, "exclude_seen": False}
            top = await client.post("/v1/recommend", json=asked)
            near = await client.post("/v1/neighbours", json={"items": ["new1"], "k": 2})
            return health.json(), top.json(), near.json()

    health, top, near = asyncio.run(ask())
    assert health["num_items"] == 30
    for result in top["results"]:
        given = [item["item_id"] for item in result["items"]]
        assert sorted(given) == sorted({f"i{n}" for n in range(30)} - set(GONE) | set(NEW))
    assert len(near["results"][0]["items"]) == 2
