"""Explanations, against inner products by hand and against the towers asked one thing at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError, UnknownIdError
from recsys.models import ItemTowerSpec, UserTowerSpec
from recsys.serving import Explanations, Lookup, print_explanations

MakeBundle = Callable[..., Bundle]

ROWS = [(f"u{u}", f"i{(u * 3 + n * n) % 11}") for u in range(7) for n in range(6)]
ROWS += [("u1", "i3"), ("u1", "i9"), ("u1", "i3")]  # a repeat
ITEMS: dict[str, list[Any]] = {
    "id": [f"i{n}" for n in range(11)],
    "title": [f"Title {n}" for n in range(11)],
    "price": [float(n) if n != 4 else float("nan") for n in range(11)],
    "tags": [[f"t{n % 3}", f"t{n % 2}"] if n % 4 else [] for n in range(11)],
}
USERS: dict[str, list[Any]] = {
    "id": [f"u{u}" for u in range(7)],
    "age": [str(20 + u % 3) for u in range(7)],
}
CONTEXT = {"device": [["tv", "phone"][n % 2] for n in range(len(ROWS))]}
LINEAR = {"history": "recency", "decay": 1.0, "exponent": 0.0}
ENCODERS: dict[str, dict[str, Any]] = {
    "mean": {"history": "mean"},
    "recency": {"history": "recency"},
    "interests": {"history": "attention", "num_interests": 3},
    "gru": {"history": "gru"},
    "transformer": {"history": "transformer"},
    "times": {"history": "gru", "time_gaps": True},
    "shared": {"history": "recency", "history_table": "shared"},
    "tower": {"history": "recency", "history_table": "tower"},
    "none": {"history": "none"},
}


def make_lookup(make_bundle: MakeBundle, user: dict[str, Any], **spec: Any) -> Lookup:
    item = spec.pop("item", {})
    bundle = make_bundle(
        ROWS,
        items=ITEMS,
        users=USERS,
        item_features=("price", "tags"),
        user_features=("age",),
        context=CONTEXT,
        user_tower=UserTowerSpec(**user),
        item_tower=ItemTowerSpec(**item),
        **spec,
    )
    if bundle.model.item_tower.bias is not None:  # begins at 0, which would show nothing
        biases = np.linspace(-1, 1, bundle.num_items, dtype=np.float32)
        bundle.model.item_tower.bias.weight.data[:-1, 0] = torch.from_numpy(biases)
        vectors = np.array(bundle.item_vectors)
        vectors[:, -1] = biases
        object.__setattr__(bundle, "item_vectors", vectors)
    return Lookup(bundle)


def pieces_of(found: Explanations, item: str, side: str) -> dict[str, float]:
    return {
        row["piece"]: row["contribution"]
        for row in found.pieces.to_pylist()
        if (row["item_id"], row["side"]) == (item, side)
    }


def history_of(found: Explanations, item: str) -> dict[str, dict[str, Any]]:
    rows = [row for row in found.history.to_pylist() if row["item_id"] == item]
    return {row["history_item_id"]: row for row in rows}


def scores_of(lookup: Lookup, item: str, **known: Any) -> float:
    """Score an item by the vectors that the lookup gives."""
    users = lookup.embed_users([known.pop("user")], **known)["vector"].to_pylist()
    row = lookup.bundle.items.vocabulary.rows([item])[0]
    return float((np.array(users, np.float64) @ lookup.bundle.item_vectors[row]).max())


def test_a_history_that_is_summed_contributes_inner_products(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, LINEAR)
    bundle = lookup.bundle
    table = bundle.model.user_tower.history_table
    assert table is not None
    rows = table.weight.detach().numpy()
    found = lookup.explain("u1", ["i0", "i7"])
    counts = {item: [i for u, i in ROWS if u == "u1"].count(item) for _, item in ROWS}
    for item in ("i0", "i7"):
        vector = bundle.item_vectors[bundle.items.vocabulary.rows([item])[0]]
        history = history_of(found, item)
        assert history.keys() == {i for u, i in ROWS if u == "u1"}
        assert history["i3"]["num_events"] == counts["i3"] >= 2
        for one, row in history.items():
            of_one = rows[bundle.items.vocabulary.rows([one])[0]]
            assert row["num_events"] == counts[one]
            assert row["contribution"] == pytest.approx(counts[one] * of_one @ vector, abs=1e-4)


def test_pieces_that_are_summed_contribute_inner_products_and_leave_no_remainder(
    make_bundle: MakeBundle,
) -> None:
    lookup = make_lookup(make_bundle, LINEAR, item_bias=True)
    bundle, model = lookup.bundle, lookup.bundle.model
    found = lookup.explain("u2", ["i5"])
    row, user = (
        v.rows([one])[0]
        for v, one in ((bundle.items.vocabulary, "i5"), (bundle.users.vocabulary, "u2"))
    )
    item, query = (
        bundle.item_vectors[row][:-1],
        lookup.embed_users(["u2"])["vector"].to_pylist()[0][:-1],
    )
    ids = model.user_tower.ids.weight.detach().numpy()  # type: ignore[union-attr]
    of_user, of_item = pieces_of(found, "i5", "user"), pieces_of(found, "i5", "item")
    assert of_user["id"] == pytest.approx((ids[user] - ids[-1]) @ item, abs=1e-4)
    ids = model.item_tower.ids.weight.detach().numpy()  # type: ignore[union-attr]
    assert of_item["id"] == pytest.approx(np.array(query) @ (ids[row] - ids[-1]), abs=1e-4)
    assert of_item["bias"] == bundle.item_vectors[row, -1] != 0
    assert list(of_user) == ["base", "id", "features.age", "context.device", "history", "remainder"]
    assert list(of_item) == ["base", "id", "features.price", "features.tags", "bias", "remainder"]
    assert (of_user["remainder"], of_item["remainder"]) == pytest.approx((0, 0), abs=1e-4)
    assert of_user["context.device"] == 0  # not given, so that it is missing anyway


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())
@pytest.mark.parametrize("shape", ["plain", "layers"])
def test_contributions_are_what_the_score_loses(
    make_bundle: MakeBundle, encoder: dict[str, Any], shape: str
) -> None:
    layers = {"combine": "concat", "hidden": (8,)} if shape == "layers" else {}
    more = {"normalize": True, "item_bias": True, "item": layers} if layers else {}
    lookup = make_lookup(make_bundle, encoder | layers, **more)
    found = lookup.explain("u1", ["i2", "i10"])
    model, bundle = lookup.bundle.model, lookup.bundle
    for item in ("i2", "i10"):
        score = scores_of(lookup, item, user="u1")
        of_user, of_item = pieces_of(found, item, "user"), pieces_of(found, item, "item")
        for pieces in (of_user, of_item):
            assert sum(pieces.values()) == pytest.approx(score, abs=1e-4)
        # Features by a table of the caller's, without a value.
        missing = pa.table({"user_id": ["u1"], "age": pa.array([None], pa.string())})
        others = scores_of(lookup, item, user="u1", features=missing)
        assert of_user["features.age"] == pytest.approx(score - others, abs=1e-4)
        # An unknown user with the same history, without the feature that only the id tells of.
        own = pa.table({"user_id": ["x"], "age": ["21"]})
        events = pa.table({"user_id": ["x"] * 9, "item_id": [i for u, i in ROWS if u == "u1"]})
        if not encoder.get("time_gaps"):
            others = scores_of(lookup, item, user="x", features=own, histories=events)
            assert of_user["id"] == pytest.approx(score - others, abs=1e-4)
        nothing = scores_of(lookup, item, user="nobody")
        assert of_user["base"] == pytest.approx(nothing, abs=1e-4)
        if "history" in of_user:
            others = scores_of(lookup, item, user="u1", histories={"u1": []})
            assert of_user["history"] == pytest.approx(score - others, abs=1e-4)
        # Items by a table of features, of which one is missing.
        place = int(item[1:])
        without = pa.table({"item_id": [item], "tags": [ITEMS["tags"][place]]})
        vector = np.array(lookup.embed_items(without)["vector"].to_pylist()[0])
        row = bundle.items.vocabulary.rows([item])[0]
        if model.spec.item_bias:
            vector[-1] = bundle.item_vectors[row, -1]
        users = np.array(lookup.embed_users(["u1"])["vector"].to_pylist())
        assert of_item["features.price"] == pytest.approx(score - (users @ vector).max(), abs=1e-4)
    assert_allclose(
        found.items["score"].to_numpy(),
        [scores_of(lookup, item, user="u1") for item in ("i2", "i10")],
        atol=1e-5,
    )


@pytest.mark.parametrize("encoder", ["mean", "interests"])
def test_an_item_of_the_history_contributes_what_the_score_loses_without_it(
    make_bundle: MakeBundle, encoder: str
) -> None:
    # A mean takes an item out wherever it stands, so the item may be left out of the log; for
    # the attention the oldest one may, as the others keep their ages.
    lookup = make_lookup(make_bundle, ENCODERS[encoder])
    mine = [i for u, i in ROWS if u == "u0"]
    history = history_of(lookup.explain("u0", ["i7"]), "i7")
    score = scores_of(lookup, "i7", user="u0")
    for item in mine if encoder == "mean" else mine[:1]:
        others = [one for one in mine if one != item]
        without = scores_of(lookup, "i7", user="u0", histories={"u0": others})
        assert history[item]["contribution"] == pytest.approx(score - without, abs=1e-5)
    assert any(abs(row["contribution"]) > 1e-3 for row in history.values())


def test_the_history_stands_in_the_order_of_its_cosines(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["recency"], item_bias=True)
    found = lookup.explain("u1", ["i4"]).history.to_pylist()
    ids, vectors = lookup.bundle.items.vocabulary, lookup.bundle.item_vectors[:, :-1]
    item = vectors[ids.rows(["i4"])[0]]
    for row in found:
        other = vectors[ids.rows([row["history_item_id"]])[0]]
        cosine = item @ other / (np.linalg.norm(item) * np.linalg.norm(other))
        assert row["similarity"] == pytest.approx(cosine, abs=1e-6)
    values = [row["similarity"] for row in found]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 3
    first = lookup.explain("u1", ["i4"], num_history=2).history.to_pylist()
    assert first == found[:2]


def test_events_that_are_too_old_to_be_read_contribute_nothing(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["recency"] | {"history_length": 2})
    history = history_of(lookup.explain("u0", ["i6"]), "i6")
    mine = [i for u, i in ROWS if u == "u0"]
    assert len(set(mine)) > 3
    for item in set(mine):
        assert (history[item]["contribution"] != 0) == (item in mine[-2:])


def test_the_interest_that_gives_the_score_is_named(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["interests"])
    items = [f"i{n}" for n in range(11)]
    found = lookup.explain("u3", items)
    users = np.array(lookup.embed_users(["u3"])["vector"].to_pylist(), np.float64)
    rows = lookup.bundle.items.vocabulary.rows(items)
    expected = (users @ lookup.bundle.item_vectors[rows].T.astype(np.float64)).argmax(axis=0)
    assert found.items["interest"].to_pylist() == expected.tolist()
    assert len(set(expected)) > 1
    one = make_lookup(make_bundle, ENCODERS["mean"]).explain("u3", ["i1"])
    assert one.items["interest"].to_pylist() == [None]


def test_without_items_the_best_ones_are_explained_with_their_scores(
    make_bundle: MakeBundle,
) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["interests"])
    found, best = lookup.explain("u5", k=4), lookup.recommend(["u5"], k=4)
    assert found.items["item_id"].equals(best["item_id"])
    assert_allclose(found.items["score"].to_numpy(), best["score"].to_numpy(), rtol=1e-6)
    assert [one.items["item_id"].to_pylist()[0] for one in found] == best["item_id"].to_pylist()


def test_where_chooses_among_the_items_that_would_be_recommended(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["interests"])
    first = lookup.recommend(["u5"], k=1)["item_id"].to_pylist()[0]
    found = lookup.explain("u5", k=3, where=f"item_id != {first}")
    best = lookup.recommend(["u5"], k=4)["item_id"].to_pylist()
    assert found.items["item_id"].to_pylist() == best[1:]
    with pytest.raises(ArgumentError, match="`where` chooses items to explain: it cannot"):
        lookup.explain("u5", ["i1"], where="item_id = i1")


def test_what_a_caller_gives_stands_in_place_of_what_is_stored(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, LINEAR)
    features = pa.table({"user_id": ["new"], "age": ["22"]})
    context = pa.table({"user_id": ["new"], "device": ["tv"]})
    known = {"histories": {"new": ["i1", "i8"]}, "features": features, "context": context}
    found = lookup.explain("new", ["i2"], **known)
    pieces = pieces_of(found, "i2", "user")
    assert sum(pieces.values()) == pytest.approx(
        scores_of(lookup, "i2", user="new", **known), abs=1e-4
    )
    assert pieces["id"] == 0  # unknown anyway
    assert pieces["context.device"] != 0 != pieces["features.age"]
    assert history_of(found, "i2").keys() == {"i1", "i8"}


def test_a_user_of_whom_nothing_is_known_is_marked(make_bundle: MakeBundle) -> None:
    found = make_lookup(make_bundle, ENCODERS["recency"]).explain("nobody", k=2)
    assert found.items["fallback"].to_pylist() == [True, True]
    assert found.history.num_rows == 0
    assert pieces_of(found, found.items["item_id"][0].as_py(), "user")["history"] == 0


def test_the_tables_have_their_types(make_bundle: MakeBundle) -> None:
    found = make_lookup(make_bundle, ENCODERS["recency"]).explain("u0", k=2)
    text, number = pa.string(), pa.float32()
    assert found.items.schema == pa.schema(
        {"item_id": text, "score": number, "interest": pa.int32(), "fallback": pa.bool_()}
    )
    assert found.history.schema == pa.schema(
        {
            "item_id": text,
            "history_item_id": text,
            "num_events": pa.int32(),
            "similarity": number,
            "contribution": number,
        }
    )
    assert found.pieces.schema == pa.schema(
        {"item_id": text, "side": text, "piece": text, "contribution": number}
    )


def test_wrong_arguments_are_refused(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["recency"])
    with pytest.raises(UnknownIdError, match="There is no item 'nope' with a vector"):
        lookup.explain("u0", ["i1", "nope"])
    with pytest.raises(ArgumentError, match="`k` must be at least 1, got 0"):
        lookup.explain("u0", k=0)
    with pytest.raises(ArgumentError, match="`num_history` must be at least 0, got -1"):
        lookup.explain("u0", num_history=-1)


def test_no_item_left_is_an_empty_explanation(make_bundle: MakeBundle) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["recency"])
    everything = {"u0": ITEMS["id"]}
    found = lookup.explain("u0", histories=everything)
    assert (found.items.num_rows, found.history.num_rows, found.pieces.num_rows) == (0, 0, 0)


def test_the_terminal_shows_names_as_they_are_and_both_tables(
    make_bundle: MakeBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    lookup = make_lookup(make_bundle, ENCODERS["interests"], item_bias=True)
    found = lookup.explain("u1", ["i4"], num_history=2)
    print_explanations(lookup, "u1[red]", found)
    shown = capsys.readouterr().out
    score, interest = found.items["score"][0].as_py(), found.items["interest"][0].as_py()
    assert f"u1[red] and i4  Title 4: score {score:.4f}, of interest {interest}" in shown
    for row in [*found.history.to_pylist(), *found.pieces.to_pylist()]:
        assert f"{row['contribution']:+.4f}".replace("-0.0000", "+0.0000") in shown
        assert row.get("history_item_id", row.get("piece")) in shown
    print_explanations(lookup, "nobody", lookup.explain("nobody", ["i4"]))
    assert "nothing is known of the user" in capsys.readouterr().out


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(st.sampled_from(ITEMS["id"]), max_size=9))
def test_any_history_adds_up_to_its_score(interests_lookup: Lookup, history: list[str]) -> None:
    found = interests_lookup.explain("new", ["i0", "i9"], histories={"new": history})
    for place, item in enumerate(("i0", "i9")):
        for side in ("user", "item"):
            total = sum(pieces_of(found, item, side).values())
            assert total == pytest.approx(found.items["score"][place].as_py(), abs=1e-4)
        assert history_of(found, item).keys() == set(history)


@pytest.fixture
def interests_lookup(make_bundle: MakeBundle) -> Lookup:
    """Build a bundle of three interests a user."""
    return make_lookup(make_bundle, ENCODERS["interests"])
