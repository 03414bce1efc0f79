"""Lookups: what users and items get, by ids alone, whatever is known of them."""

import logging
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError, DataError, UnknownIdError
from recsys.index import IndexSettings
from recsys.models import UserTowerSpec
from recsys.serving import Lookup, UserRequest

MakeBundle = Callable[..., Bundle]


def make_rows(num_users: int = 30, num_items: int = 40, per_user: int = 6) -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    return [
        (f"u{user}", f"i{item}")
        for user in range(num_users)
        for item in rng.permutation(num_items)[:per_user]
    ]


def by_user(table: pa.Table) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for user, item in zip(table.column(0).to_pylist(), table["item_id"].to_pylist(), strict=True):
        lists.setdefault(user, []).append(item)
    return lists


def slow_recommend(bundle: Bundle, user: str, k: int, seen: set[str]) -> list[str]:
    """Rank every item by the towers' own vectors."""
    lookup = Lookup(bundle)
    vector = lookup.embed_users([user])["vector"].combine_chunks().flatten().to_numpy()
    scores = (np.asarray(bundle.item_vectors, np.float64) @ vector.astype(np.float64)).astype(
        np.float32
    )
    ids = bundle.items.vocabulary.ids.to_pylist()
    order = sorted(range(bundle.num_items), key=lambda row: (-scores[row], row))
    return [ids[row] for row in order if ids[row] not in seen][:k]


def test_users_get_the_best_items_they_have_not_seen(make_bundle: MakeBundle) -> None:
    rows = make_rows()
    bundle = make_bundle(rows)
    table = Lookup(bundle).recommend(k=5)
    assert table.schema == pa.schema(
        {
            "user_id": pa.string(),
            "item_id": pa.string(),
            "rank": pa.int32(),
            "score": pa.float32(),
            "fallback": pa.bool_(),
        }
    )
    found = by_user(table)
    assert len(found) == 30
    for user, items in found.items():
        seen = {item for who, item in rows if who == user}
        assert items == slow_recommend(bundle, user, 5, seen)
    assert table["rank"].to_pylist() == [1, 2, 3, 4, 5] * 30
    assert not any(table["fallback"].to_pylist())


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_index_and_exact_search_agree_on_a_small_catalogue(
    make_bundle: MakeBundle, kind: str
) -> None:
    lookup = Lookup(make_bundle(make_rows(), index=IndexSettings(kind=kind), item_bias=True))
    assert lookup.recommend(k=10).equals(lookup.recommend(k=10, exact=True))
    assert lookup.neighbours(k=10).equals(lookup.neighbours(k=10, exact=True))


def test_seen_items_return_where_repeats_are_the_point(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(make_rows(), exclude_seen=False))
    everything = by_user(lookup.recommend(["u0"], k=100))["u0"]
    assert len(everything) == lookup.bundle.num_items
    assert len(by_user(lookup.recommend(["u0"], k=100, exclude_seen=True))["u0"]) == (
        lookup.bundle.num_items - 6
    )


def test_a_user_gets_the_same_alone_and_among_others(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(make_rows()))
    whole = lookup.recommend(k=7)
    alone = pa.concat_tables([lookup.recommend([f"u{user}"], k=7) for user in (3, 17, 29)])
    ids = whole["user_id"].to_pylist()
    for user in ("u3", "u17", "u29"):
        mine = whole.filter(pa.array([each == user for each in ids]))
        other = alone.filter(pa.array([each == user for each in alone["user_id"].to_pylist()]))
        assert mine.equals(other)


@pytest.mark.parametrize(("users", "rows"), [(4, 1000), (1000, 14)])
def test_blocks_of_users_change_nothing_and_hold_few_rows(
    make_bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch, users: int, rows: int
) -> None:
    plans = {"id": [f"u{user}" for user in range(30)], "plan": ["free", "paid", "paid"] * 10}
    lookup = Lookup(make_bundle(make_rows(), users=plans, user_features=("plan",)))
    request = UserRequest(
        k=7,
        features=pa.table({"user_id": ["u3", "u21", "new"], "plan": ["paid", "free", "free"]}),
        histories={"u5": ["i1", "i2"], "u22": ["i3"], "new": ["i9", "i4"]},
    )
    asked = [*(f"u{user}" for user in range(30)), "new", "unheard of"]
    (whole,) = lookup.recommend_blocks(asked, request)
    monkeypatch.setattr("recsys.serving.user_lookup.USERS_AT_ONCE", users)
    monkeypatch.setattr("recsys.serving.user_lookup._ITEMS_AT_ONCE", rows)
    parts = list(lookup.recommend_blocks(asked, request))
    assert len(parts) == (8 if users == 4 else 16)  # 32 users; 14 rows are two users
    tables = [part.to_arrow("user_id", with_fallback=True) for part in parts]
    assert pa.concat_tables(tables).equals(whole.to_arrow("user_id", with_fallback=True))


def test_an_unknown_user_gets_popular_items_and_is_marked(make_bundle: MakeBundle) -> None:
    rows = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("c", "x"), ("c", "y"), ("c", "z")]
    rows += [("d", "z"), ("d", "w"), ("e", "z")]  # x 3, y 2, z 4, w 1
    table = Lookup(make_bundle(rows)).recommend(["nobody", "a"], k=2)
    assert table["user_id"].to_pylist() == ["nobody", "nobody", "a", "a"]
    assert table["item_id"].to_pylist()[:2] == ["z", "x"]
    assert table["score"].to_pylist()[:2] == [4.0, 3.0]
    assert table["fallback"].to_pylist() == [True, True, False, False]
    limited = Lookup(make_bundle(rows)).recommend(
        ["nobody"], k=5, allowed=["w", "y", "x", "other"], exclude=["x"]
    )
    assert limited["item_id"].to_pylist() == ["y", "w"]


def test_given_histories_stand_in_place_of_stored_ones(make_bundle: MakeBundle) -> None:
    rows = make_rows()
    lookup = Lookup(make_bundle(rows))
    stored = [item for user, item in rows if user == "u0"]
    fresh = [f"i{item}" for item in range(40) if f"i{item}" not in stored][:4]
    table = pa.table({"user_id": ["u0"] * 4 + ["new"] * 4, "item_id": fresh * 2})
    found = lookup.recommend(k=40, histories=table)
    lists = by_user(found)
    assert list(lists) == ["u0", "new"]  # all means the users of the file
    assert not any(found["fallback"].to_pylist())
    assert set(lists["new"]).isdisjoint(fresh)
    assert set(lists["u0"]).isdisjoint(fresh + stored)
    assert len(lists["new"]) == lookup.bundle.num_items - 4
    before, after = (
        lookup.embed_users(["u0"], histories=given)["vector"].to_pylist() for given in (None, table)
    )
    assert before != after
    # Users that the histories do not hold keep their own.
    assert lookup.recommend(["u5"], k=5, histories=table).equals(lookup.recommend(["u5"], k=5))


def test_the_stored_history_given_again_changes_nothing(make_bundle: MakeBundle) -> None:
    rows = make_rows()
    lookup = Lookup(make_bundle(rows))
    mine = [item for user, item in rows if user == "u4"]
    assert lookup.recommend(["u4"], k=9).equals(
        lookup.recommend(["u4"], k=9, histories={"u4": mine})
    )
    shuffled = pa.table(
        {"user_id": ["u4"] * 6, "item_id": mine[::-1], "timestamp": [6, 5, 4, 3, 2, 1]}
    )
    assert lookup.recommend(["u4"], k=9).equals(lookup.recommend(["u4"], k=9, histories=shuffled))
    backwards = lookup.recommend(["u4"], k=9, histories={"u4": mine[::-1]})
    assert not lookup.recommend(["u4"], k=9).equals(backwards)


def test_events_of_unknown_items_are_left_out_with_a_warning(
    make_bundle: MakeBundle, caplog: pytest.LogCaptureFixture
) -> None:
    lookup = Lookup(make_bundle(make_rows()))
    with caplog.at_level(logging.WARNING):
        table = lookup.recommend(k=3, histories={"new": ["i1", "who knows"], "newer": ["?"]})
    assert "2 events of the histories name items without a vector" in caplog.text
    assert table["fallback"].to_pylist() == [False] * 3 + [True] * 3


def test_nobody_asked_for_gives_an_empty_table_also_with_features(make_bundle: MakeBundle) -> None:
    users = {"id": [f"u{user}" for user in range(30)], "plan": ["free", "paid", "paid"] * 10}
    lookup = Lookup(make_bundle(make_rows(), users=users, user_features=("plan",)))
    assert lookup.recommend([], k=3).num_rows == 0
    assert lookup.recommend(k=3, histories={}).num_rows == 0


def test_features_that_the_model_does_not_read_speak_for_nobody(make_bundle: MakeBundle) -> None:
    users = {"id": [f"u{user}" for user in range(30)], "plan": ["free", "paid", "paid"] * 10}
    tower = UserTowerSpec(use_id=False, features=())
    bundle = make_bundle(make_rows(), users=users, user_features=("plan",), user_tower=tower)
    features = pa.table({"user_id": ["new"], "plan": ["free"]})
    table = Lookup(bundle).recommend(["new", "u1"], k=2, features=features)
    assert table["fallback"].to_pylist() == [True, True, False, False]
    # A history that is taken away leaves nothing of a known user that this model reads.
    without = Lookup(bundle).recommend(["u1"], k=2, histories={"u1": []})
    assert without["fallback"].to_pylist() == [True, True]


def test_features_speak_for_a_user_without_history(make_bundle: MakeBundle) -> None:
    rows = make_rows()
    users = {"id": [f"u{user}" for user in range(30)], "plan": ["free", "paid", "paid"] * 10}
    lookup = Lookup(make_bundle(rows, users=users, user_features=("plan",)))
    features = pa.table({"user_id": ["n1", "n2", "n3"], "plan": ["free", "paid", None]})
    table = lookup.recommend(["n1", "n2", "n3"], k=4, features=features)
    lists = by_user(table)
    assert lists["n1"] != lists["n2"]
    assert table["fallback"].to_pylist() == [False] * 8 + [True] * 4
    with pytest.raises(DataError, match="features has the column 'age'; the model knows plan"):
        lookup.recommend(["n1"], k=1, features=features.append_column("age", [[1, 2, 3]]))
    with pytest.raises(DataError, match="lacks a column 'user_id'"):
        lookup.recommend(["n1"], k=1, features=pa.table({"plan": ["free"]}))


def test_given_features_of_every_kind_replace_stored_ones(make_bundle: MakeBundle) -> None:
    users = {
        "id": [f"u{user}" for user in range(30)],
        "age": [20.0 + user for user in range(30)],
        "likes": [["a", "b"], ["c"], []] * 10,
        "taste": [[0.5, float(user)] for user in range(30)],
    }
    features = ("age", "likes", "taste")
    lookup = Lookup(make_bundle(make_rows(), users=users, user_features=features))
    stored = lookup.embed_users(["u3", "u4"])["vector"].to_pylist()
    same = pa.table({"user_id": ["u4"], "age": [24.0], "likes": [["c"]], "taste": [[0.5, 4.0]]})
    assert lookup.embed_users(["u3", "u4"], features=same)["vector"].to_pylist() == stored
    other = pa.table({"user_id": ["u4"], "age": [70.0], "likes": [["a"]], "taste": [[0.5, 4.0]]})
    changed = lookup.embed_users(["u3", "u4"], features=other)["vector"].to_pylist()
    assert changed[0] == stored[0]
    assert changed[1] != stored[1]


def test_context_belongs_to_the_interaction(make_bundle: MakeBundle) -> None:
    rows = make_rows()
    device = [["phone", "desk"][n % 2] for n in range(len(rows))]
    lookup = Lookup(make_bundle(rows, context={"device": device}))
    at_desk = pa.table({"user_id": ["u1"], "device": ["desk"]})
    vectors = [
        lookup.embed_users(["u1"], context=context)["vector"].to_pylist()
        for context in (None, at_desk)
    ]
    assert vectors[0] != vectors[1]


def test_filters_hold_for_everyone(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(make_rows()))
    allowed, exclude = [f"i{item}" for item in range(12)], ["i3", "i4", "unheard of"]
    for found in (
        lookup.recommend(k=50, allowed=allowed, exclude=exclude),
        lookup.neighbours(k=50, allowed=allowed, exclude=exclude),
    ):
        assert set(found["item_id"].to_pylist()) <= set(allowed) - set(exclude)
    assert lookup.recommend(k=5, allowed=[]).num_rows == 0


def test_each_id_is_answered_once_in_order(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(make_rows()))
    found = lookup.recommend(["u9", "u2", "u9"], k=2)
    assert found["user_id"].to_pylist() == ["u9", "u9", "u2", "u2"]
    coded = pa.chunked_array([pa.array(["u9", "u2"]).dictionary_encode()])
    assert lookup.recommend(coded, k=2).equals(found)
    assert lookup.recommend([], k=2).num_rows == 0
    blocks = list(lookup.recommend_blocks(None, UserRequest(k=2)))
    assert [len(block) for block in blocks] == [30]


def test_neighbours_share_direction_and_leave_the_item_out(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(make_rows(), item_bias=True))
    table = lookup.neighbours(["i7", "i2"], k=3)
    assert table.schema.names == ["query_item_id", "item_id", "rank", "score"]
    lists = by_user(table)
    vectors = np.array(lookup.embed_items()["vector"].to_pylist())[:, :-1]  # without the bias
    ids = lookup.bundle.items.vocabulary.ids.to_pylist()
    for item, near in lists.items():
        scores = vectors @ vectors[ids.index(item)]
        order = [ids[row] for row in np.argsort(-scores) if ids[row] != item]
        assert near == order[:3]


def test_vectors_of_known_and_of_new_items(make_bundle: MakeBundle) -> None:
    names = [f"i{item}" for item in range(40)]
    items = {"id": names, "genre": [f"g{n % 3}" for n in range(40)], "title": names}
    lookup = Lookup(make_bundle(make_rows(), items=items, item_features=("genre",)))
    stored = lookup.embed_items(["i3", "i5"])["vector"].to_pylist()
    again = pa.table({"item_id": ["i3", "new", "newer", "i5"], "genre": ["g0", "g0", "g1", "g2"]})
    computed = lookup.embed_items(again)["vector"].to_pylist()
    assert [computed[0], computed[3]] == stored
    assert computed[1] != computed[2]
    assert lookup.describe_items(["i3"]).to_pylist() == [
        {"item_id": "i3", "title": "i3", "genre": "g0"}
    ]


def test_what_cannot_be_asked_is_refused(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(make_rows()))
    with pytest.raises(UnknownIdError, match=r"no item 'nowhere' with a vector \(and 1 more\)"):
        lookup.neighbours(["i1", "nowhere", "nor here"], k=2)
    with pytest.raises(UnknownIdError, match="no item '9'"):
        lookup.embed_items([9])
    with pytest.raises(ArgumentError, match="`k` must be at least 1, got 0"):
        lookup.recommend(k=0)
    with pytest.raises(ArgumentError, match="`k` must be at least 1, got 0"):
        lookup.neighbours(k=0)
    with pytest.raises(ArgumentError, match="must be a list of ids, got the text 'u1'"):
        lookup.recommend("u1", k=1)
    with pytest.raises(ArgumentError, match="Ids must be texts or whole numbers, got double"):
        lookup.recommend([1.5], k=1)
    with pytest.raises(ArgumentError, match="Ids must be texts or whole numbers: "):
        lookup.recommend([["u1"], 3], k=1)
    with pytest.raises(ArgumentError, match="`items` must be ids, or a table with a column"):
        lookup.embed_items(pa.table({"id": ["i1"]}))
    with pytest.raises(ArgumentError, match="Ids must not be null"):
        lookup.recommend(["a", None], k=1)
    with pytest.raises(DataError, match="The histories lack a column 'item_id'"):
        lookup.recommend(k=1, histories=pa.table({"user_id": ["a"]}))
