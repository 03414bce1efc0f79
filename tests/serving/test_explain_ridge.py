"""A ridge part in explanations: a piece of its own on both sides, whatever the towers read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from recsys.bundle import Bundle
from recsys.models import ItemTowerSpec, UserTowerSpec
from recsys.serving import Explanations, Lookup, print_explanations

MakeBundle = Callable[..., Bundle]
ROWS = [(f"u{u}", f"i{(u * 3 + n * n) % 11}") for u in range(7) for n in range(6)]
ITEMS: dict[str, list[Any]] = {"id": [f"i{n}" for n in range(11)], "price": [*range(11)]}
MAKES: dict[str, dict[str, Any]] = {
    "ids": {"user": {"history": "mean"}},
    "no item id": {"user": {"history": "mean", "use_id": False}, "item": {"use_id": False}},
    "interests": {"user": {"history": "attention", "num_interests": 3}},
    "bias": {"user": {"history": "mean"}, "item_bias": True},
}


def make_lookup(make_bundle: MakeBundle, make: str) -> Lookup:
    spec = dict(MAKES[make])
    bundle = make_bundle(
        ROWS,
        items=ITEMS,
        item_features=("price",),
        user_tower=UserTowerSpec(**spec.pop("user")),
        item_tower=ItemTowerSpec(**spec.pop("item", {})),
        ridge_dim=16,
        ridge_scale=3.0,
        **spec,
    )
    ridge = bundle.model.ridge
    assert ridge is not None
    torch.manual_seed(1)
    ridge.set_item_factors(torch.randn(bundle.num_items, 16))
    vectors = np.array(bundle.item_vectors)
    vectors[:, -16:] = ridge.embed_items(torch.arange(bundle.num_items)).numpy()
    object.__setattr__(bundle, "item_vectors", vectors)
    return Lookup(bundle)


def score_of_ridge(lookup: Lookup, history: list[str], item: str) -> float:
    bundle = lookup.bundle
    ridge, rows = bundle.model.ridge, bundle.items.vocabulary.rows([*history, item])
    assert ridge is not None
    items = torch.from_numpy(rows)
    user = ridge.embed_histories(items[None, :-1], torch.ones(1, len(history), dtype=torch.bool))
    return float((user @ ridge.embed_items(items[-1:]).T).item())


def sides_of(found: Explanations, item: str) -> dict[str, dict[str, float]]:
    sides: dict[str, dict[str, float]] = {"user": {}, "item": {}}
    for row in found.pieces.to_pylist():
        if row["item_id"] == item:
            sides[row["side"]][row["piece"]] = row["contribution"]
    return sides


@pytest.mark.parametrize("make", MAKES)
def test_the_score_of_the_ridge_part_is_a_piece_of_both_sides(
    make_bundle: MakeBundle, make: str
) -> None:
    lookup = make_lookup(make_bundle, make)
    mine = [item for user, item in ROWS if user == "u1"]
    found = lookup.explain("u1", ["i2", "i10"])
    for place, item in enumerate(("i2", "i10")):
        sides, ridge = sides_of(found, item), score_of_ridge(lookup, mine, item)
        assert abs(ridge) > 0.01
        for pieces in sides.values():
            assert pieces["ridge"] == pytest.approx(ridge, abs=1e-4)
            assert list(pieces)[-2:] == ["ridge", "remainder"]
            score = found.items["score"][place].as_py()
            assert sum(pieces.values()) == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("make", MAKES)
def test_all_other_pieces_are_those_of_a_model_without_it(
    make_bundle: MakeBundle, make: str
) -> None:
    lookup = make_lookup(make_bundle, make)
    found = sides_of(lookup.explain("u1", ["i2"]), "i2")
    ridge, vectors = lookup.bundle.model.ridge, np.array(lookup.bundle.item_vectors)
    assert ridge is not None
    ridge.set_item_factors(torch.zeros(lookup.bundle.num_items, 16))
    vectors[:, -16:] = 0
    object.__setattr__(lookup.bundle, "item_vectors", vectors)
    without = sides_of(Lookup(lookup.bundle).explain("u1", ["i2"]), "i2")
    for side, pieces in found.items():
        assert without[side].pop("ridge") == 0
        del pieces["ridge"]
        assert pieces == pytest.approx(without[side], abs=1e-4)


def test_an_item_of_the_history_contributes_to_both_parts_of_the_score(
    make_bundle: MakeBundle,
) -> None:
    lookup = make_lookup(make_bundle, "no item id")
    mine = [item for user, item in ROWS if user == "u0"]
    found = lookup.explain("u0", ["i7"])
    score = found.items["score"][0].as_py()
    for row in found.history.to_pylist():
        others = {"u0": [item for item in mine if item != row["history_item_id"]]}
        left = lookup.explain("u0", ["i7"], histories=others).items["score"][0].as_py()
        assert row["contribution"] == pytest.approx(score - left, abs=1e-4)


def test_a_model_without_a_ridge_part_has_no_such_piece(
    make_bundle: MakeBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    lookup = Lookup(make_bundle(ROWS, user_tower=UserTowerSpec(history="mean")))
    found = lookup.explain("u1", ["i2"])
    assert "ridge" not in pa.compute.unique(found.pieces["piece"]).to_pylist()
    print_explanations(lookup, "u1", found)
    assert "ridge" not in capsys.readouterr().out


def test_the_terminal_says_what_the_piece_is(
    make_bundle: MakeBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    lookup = make_lookup(make_bundle, "ids")
    print_explanations(lookup, "u1", lookup.explain("u1", ["i2"]))
    shown = capsys.readouterr().out
    assert shown.endswith("ridge: what the linear model beside the towers adds.\n")
