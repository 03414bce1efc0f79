"""Users of several interests: vectors, lists, and the filters around them."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.index import IndexSettings
from recsys.models import UserTowerSpec
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]

ROWS = [(f"u{user}", f"i{(7 * user + 3 * step) % 40}") for user in range(20) for step in range(6)]
TOWER = UserTowerSpec(history="attention", num_interests=3, use_id=False)


def test_a_user_has_a_vector_for_each_interest(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(ROWS, user_tower=TOWER, item_bias=True))
    table = lookup.embed_users(["u3", "new", "u1"])
    assert table.schema == pa.schema(
        {
            "user_id": pa.string(),
            "interest": pa.int32(),
            "vector": pa.list_(pa.float32(), 17),  # 16 and the 1 that meets the bias
        }
    )
    assert table["user_id"].to_pylist() == ["u3"] * 3 + ["new"] * 3 + ["u1"] * 3
    assert table["interest"].to_pylist() == [0, 1, 2] * 3
    vectors = np.array(table["vector"].to_pylist())
    assert (vectors[:, -1] == 1).all()
    assert len(np.unique(vectors[:3], axis=0)) == 3
    alone = lookup.embed_users(["u1"])
    assert alone["vector"].to_pylist() == table["vector"].to_pylist()[6:]
    assert lookup.embed_users([]).num_rows == 0


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_lists_are_by_the_interest_that_likes_an_item_most(
    make_bundle: MakeBundle, kind: str
) -> None:
    bundle = make_bundle(ROWS, user_tower=TOWER, item_bias=True, index=IndexSettings(kind=kind))
    lookup = Lookup(bundle)
    table = lookup.recommend(k=5)
    assert table.equals(lookup.recommend(k=5, exact=True))
    ids = bundle.items.vocabulary.ids.to_pylist()
    for user in ("u0", "u7", "u19"):
        vectors = np.array(lookup.embed_users([user])["vector"].to_pylist())
        scores = (np.asarray(bundle.item_vectors, np.float64) @ vectors.T).max(axis=1)
        scores = scores.astype(np.float32)
        seen = {item for who, item in ROWS if who == user}
        order = sorted(range(len(ids)), key=lambda row, scores=scores: (-scores[row], row))  # type: ignore[misc]
        best = [row for row in order if ids[row] not in seen][:5]
        mine = table.filter(pa.array([each == user for each in table["user_id"].to_pylist()]))
        assert mine["item_id"].to_pylist() == [ids[row] for row in best]
        np.testing.assert_allclose(mine["score"].to_numpy(), scores[best], rtol=1e-6)


def test_filters_fallbacks_and_given_histories_are_as_with_one_interest(
    make_bundle: MakeBundle,
) -> None:
    lookup = Lookup(make_bundle(ROWS, user_tower=TOWER))
    allowed = [f"i{item}" for item in range(12)]
    table = lookup.recommend(["u0", "new"], k=40, allowed=allowed, exclude=["i11"])
    assert set(table["item_id"].to_pylist()) <= set(allowed) - {"i11"}
    assert len(
        set(zip(*table.select(["user_id", "item_id"]).to_pydict().values(), strict=True))
    ) == (table.num_rows)
    assert table["fallback"].to_pylist()[-1]
    mine = [item for user, item in ROWS if user == "u4"]
    again = lookup.recommend(["u4"], k=9, histories={"u4": mine})
    assert again.equals(lookup.recommend(["u4"], k=9))
