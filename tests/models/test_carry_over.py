"""A model that goes on from another: what ids, features and layers it takes over."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from recsys.data import FeatureOptions, FeatureSchema, FeatureSpec, FeatureTable, Vocabulary
from recsys.models import (
    CarriedOver,
    ItemTowerSpec,
    ModelSpec,
    QueryInputs,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    carry_over,
    match_ids,
)

KINDS = {
    "genre": "categorical",
    "tags": "multi",
    "title": "text",
    "price": "bucket",
    "size": "numeric",
    "picture": "vector",
}
NOTHING = FeatureSchema()
OLD_ITEMS, OLD_USERS = [f"i{n}" for n in range(12)], [f"u{n}" for n in range(7)]


class World:
    """Users and items with features, and a model over them; item n is the same in every world."""

    def __init__(
        self,
        users: list[str],
        items: list[str],
        spec: ModelSpec,
        *,
        kinds: dict[str, str] | None = None,
        buckets: int = 8,
        schema: FeatureSchema | None = None,
        seed: int = 0,
    ) -> None:
        self.users, self.items = Vocabulary.from_ids(users), Vocabulary.from_ids(items)
        options = {
            name: FeatureOptions(kind=kind, num_buckets=buckets)
            for name, kind in (KINDS if kinds is None else kinds).items()
        }
        self.schema = FeatureSchema.fit(raw_features(items), options) if schema is None else schema
        torch.manual_seed(seed)
        self.model = build_two_tower(
            spec,
            num_users=len(users),
            num_items=len(items),
            user_schema=NOTHING,
            item_schema=self.schema,
            context_schema=NOTHING,
            item_counts=np.ones(len(items), np.int64),
            item_features=self.schema.encode(raw_features(items)),
        ).eval()
        for parameter in self.model.parameters():  # biases and the empty history too
            parameter.data.add_(torch.randn_like(parameter) * 0.3)

    def queries(self, users: list[str], histories: list[list[str]]) -> torch.Tensor:
        padded = np.full((len(users), 5), -1, np.int64)
        for place, items in enumerate(histories):
            padded[place, : len(items)] = self.items.rows(items)
        nothing = FeatureTable.missing(NOTHING, len(users))
        inputs = QueryInputs(self.users.rows(users), padded, nothing, nothing)
        return self.model.embed_queries(inputs)

    def candidates(self, items: list[str]) -> torch.Tensor:
        encoded = self.schema.encode(raw_features(items))
        return self.model.embed_candidates(self.items.rows(items), encoded)


def raw_features(items: list[str]) -> pa.Table:
    numbers = [int(item.strip("item")) for item in items]
    return pa.table(
        {
            "genre": [f"g{n % 4}" if n % 5 else None for n in numbers],
            "tags": [[f"t{n % 3}", f"t{n % 7}"] if n % 6 else [] for n in numbers],
            "title": [f"word{n % 8} word{n % 3}" for n in numbers],
            "price": [float(n % 9) if n % 7 else None for n in numbers],
            "size": [float(n * n) if n % 4 else None for n in numbers],
            "picture": pa.array([[float(n % 2), float(n % 3)] for n in numbers]),
        }
    )


def bucket_schema(*edges: float) -> FeatureSchema:
    spec = FeatureSpec(name="price", kind="bucket", size=2 + len(edges), edges=edges)
    return FeatureSchema((spec,))


def make_spec(**changes: Any) -> ModelSpec:
    user = UserTowerSpec(**changes.pop("user", {}))
    item = ItemTowerSpec(**changes.pop("item", {}))
    return ModelSpec(embedding_dim=4, init_std=0.5, user_tower=user, item_tower=item, **changes)


def carried(new: World, old: World, learned: NDArray[np.bool_] | None = None) -> CarriedOver:
    some = np.ones(len(old.items), bool) if learned is None else learned
    everyone = np.ones(len(old.users), bool)
    return carry_over(
        new.model,
        old.model,
        users=match_ids(new.users, old.users, num_rows=len(new.users), learned=everyone),
        items=match_ids(new.items, old.items, num_rows=len(new.items), learned=some),
        schemas={"users": NOTHING, "items": new.schema, "context": NOTHING},
        old_schemas={"users": NOTHING, "items": old.schema, "context": NOTHING},
        old_counts=np.arange(1, 1 + len(old.items)),
    )


def shuffled(ids: list[str], seed: int = 3) -> list[str]:
    return [ids[place] for place in np.random.default_rng(seed).permutation(len(ids))]


def rows_of(model: TwoTower, table: str) -> torch.Tensor:
    return dict(model.tables())[table]


layered = {"combine": "concat", "hidden": (6,), "norm": "batch_norm"}
SPECS = {
    "sum": make_spec(item_bias=True),
    "gate": make_spec(user={"gate_dim": 3}),
    "tower": make_spec(user={"history_table": "tower", "gate_dim": 3}),
    "shared": make_spec(user={"history_table": "shared"}, learn_temperature=True),
    "concat": make_spec(user={"combine": "concat"}, item={"combine": "concat"}, normalize=True),
    "layers": make_spec(user=layered, item=layered, item_bias=True),
    "gru": make_spec(user={"history": "gru", "time_gaps": True}),
    "transformer": make_spec(user={"history": "transformer", "positions": "absolute"}),
    "interests": make_spec(user={"history": "attention", "num_interests": 2}),
    "no ids": make_spec(user={"use_id": False}, item={"use_id": False}),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_the_same_ids_in_another_order_are_embedded_as_before(spec: ModelSpec) -> None:
    old = World(OLD_USERS, OLD_ITEMS, spec)
    # The same items and so the same vocabularies, counted in another order of rows.
    new = World(shuffled(OLD_USERS), shuffled(OLD_ITEMS), spec, seed=1)
    histories = [["i3", "i9"], ["i11"], [], ["i0", "i1", "i2"]] + [["i5"]] * 3
    assert not torch.allclose(new.candidates(OLD_ITEMS), old.candidates(OLD_ITEMS), atol=0.1)
    before = torch.get_rng_state()
    what = carried(new, old)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(new.candidates(OLD_ITEMS), old.candidates(OLD_ITEMS))
    assert torch.equal(new.queries(OLD_USERS, histories), old.queries(OLD_USERS, histories))
    assert torch.equal(new.model.temperature(), old.model.temperature())
    assert what.counts() == {"kept": 6, "new": 0, "dropped": 0}
    assert (what.fresh_features, what.fresh_layers) == ({}, ())


def test_ids_that_are_new_start_from_the_row_of_unknown_ids_and_others_are_counted() -> None:
    spec = make_spec(item_bias=True, user={"history": "none"})
    old = World(OLD_USERS, OLD_ITEMS, spec)
    users, items = ["v1", *shuffled(OLD_USERS)[:4], "v2"], ["i20", *shuffled(OLD_ITEMS)[:9]]
    new = World(users, items, spec, kinds={}, seed=1)
    carried(new, old)
    for side, there, here in (("user", old.users, users), ("item", old.items, items)):
        name = f"{side}_tower.ids.weight"
        table, before = rows_of(new.model, name), rows_of(old.model, name)
        for row, one in enumerate(here):
            assert torch.equal(table[row], before[there.rows([one])[0]])  # -1: the last row
        assert torch.equal(table[-1], before[-1])
    biases = rows_of(new.model, "item_tower.bias.weight")
    assert torch.equal(biases[0], rows_of(old.model, "item_tower.bias.weight")[-1])
    match = match_ids(new.items, old.items, num_rows=10, learned=np.ones(12, bool))
    assert match.counts() == {"kept": 9, "new": 1, "dropped": 3}


def test_new_ids_start_at_means_where_the_row_of_unknown_ids_was_never_trained() -> None:
    untaught = {"id_dropout": 0.0}
    spec = make_spec(item_bias=True, user={"history": "none", **untaught}, item=untaught)
    old = World(OLD_USERS, OLD_ITEMS, spec)
    new = World([*OLD_USERS, "v1"], [*OLD_ITEMS, "i20"], spec, kinds={}, seed=1)
    new.model.item_tower.bias.weight.data.zero_()  # type: ignore[union-attr]
    carried(new, old)
    # Of 12 items the rarest tenth are 2; counts are 1, 2, 3, ...
    for name, rows in (
        ("user_tower.ids", slice(0, 7)),
        ("item_tower.ids", slice(0, 2)),
        ("item_tower.bias", slice(0, 2)),
    ):
        table, before = (rows_of(one.model, f"{name}.weight") for one in (new, old))
        for row in (-2, -1):  # the new id, and what stands for unknown ones
            assert_close(table[row], before[rows].mean(dim=0))
        assert torch.equal(table[:-2], before[:-1])


def test_biases_of_new_items_start_by_their_counts_beside_those_of_old_ones() -> None:
    spec = make_spec(item_bias=True, item={"id_dropout": 0.0})
    old = World(OLD_USERS, ["i1", "i2", "i3"], spec)
    new = World(OLD_USERS, ["i1", "i20", "i3", "i21"], spec, kinds={}, seed=1)
    rows_of(old.model, "item_tower.bias.weight").data[:, 0] = torch.tensor([1.0, 5.0, 3.0, 9.0])
    new.model.start_at_popularity(np.array([4, 4, 8, 16]))  # log of 1/8, 1/8, 1/4, 1/2; half: 1/64
    carried(new, old)
    biases = rows_of(new.model, "item_tower.bias.weight")[:, 0]
    # The old ones lie 1 + log 8 and 3 + log 4 above their start: 2 + 2.5 log 2 on average.
    moved = 2 + 2.5 * np.log(2)
    wanted = [1, moved - np.log(8), 3, moved - np.log(2), moved - np.log(64)]
    assert_close(biases, torch.tensor(wanted, dtype=torch.float32))


def test_a_new_item_with_features_starts_where_the_old_model_placed_it_unseen() -> None:
    spec = make_spec(item_bias=True)
    # Without means and edges, which move with the data.
    same = {name: kind for name, kind in KINDS.items() if kind not in ("bucket", "numeric")}
    old = World(OLD_USERS, OLD_ITEMS, spec, kinds=same)
    new = World(OLD_USERS, [*OLD_ITEMS, "i25", "i13"], spec, kinds=same, seed=1)
    unseen = old.candidates(["i25", "i13"])
    carried(new, old)
    assert_close(new.candidates(["i25", "i13"]), unseen)


def test_an_item_that_the_old_training_never_met_counts_as_new() -> None:
    spec = make_spec()
    old, new = World(OLD_USERS, OLD_ITEMS, spec), World(OLD_USERS, OLD_ITEMS, spec, seed=1)
    learned = np.ones(12, bool)
    learned[[2, 5]] = False
    old.model.item_tower.rows.trained.copy_(torch.from_numpy(learned))
    carried(new, old, learned)
    name = "item_tower.ids.weight"
    assert torch.equal(rows_of(new.model, name)[2], rows_of(old.model, name)[-1])
    assert bool(new.model.item_tower.rows.trained.all())  # of the new data
    match = match_ids(new.items, old.items, num_rows=12, learned=learned)
    assert match.counts() == {"kept": 10, "new": 2, "dropped": 0}


def test_a_new_item_adds_to_a_history_what_an_old_one_adds_on_average() -> None:
    spec = make_spec(user={"gate_dim": 3})
    old, new = World(OLD_USERS, OLD_ITEMS, spec), World(OLD_USERS, ["i30", "i4"], spec, seed=1)
    learned = np.arange(12) < 10
    old.model.item_tower.rows.trained.copy_(torch.from_numpy(learned))
    carried(new, old, learned)
    for name in ("history_table", "history.gate.keys", "history.gate.biases"):
        table = f"user_tower.{name}.weight"
        assert torch.equal(rows_of(new.model, table)[1], rows_of(old.model, table)[4])
        assert_close(rows_of(new.model, table)[0], rows_of(old.model, table)[:10].mean(dim=0))


def test_values_of_categories_are_matched_by_their_text() -> None:
    spec, kinds = make_spec(), {"genre": "categorical", "tags": "multi"}
    old = World(OLD_USERS, ["i1", "i2", "i3", "i6"], spec, kinds=kinds)
    new = World(OLD_USERS, ["i14", "i4", "i2", "i22", "i18"], spec, kinds=kinds, seed=1)
    carried(new, old)
    for name, place in (("genre", 0), ("tags", 1)):
        table = rows_of(new.model, f"item_tower.features.encoders.{place}.table.weight")
        before = rows_of(old.model, f"item_tower.features.encoders.{place}.table.weight")
        values, old_values = ({s.name: s for s in w.schema}[name].values for w in (new, old))
        assert set(values) & set(old_values)
        assert set(values) - set(old_values)
        assert torch.equal(table[0], before[0])
        for row, value in enumerate(values, start=1):
            expected = 1 + old_values.index(value) if value in old_values else 0
            assert torch.equal(table[row], before[expected])


def test_buckets_go_on_from_those_that_they_lie_in() -> None:
    # New buckets: below 10, 10 to 20, from 20 on; their middles are 5, 15 and 25, the outer two
    # taken as wide as the inner one. Old ones: below 4, 4 to 12, 12 to 30, from 30 on.
    old = World(OLD_USERS, OLD_ITEMS, make_spec(), schema=bucket_schema(4.0, 12.0, 30.0))
    new = World(OLD_USERS, OLD_ITEMS, make_spec(), schema=bucket_schema(10.0, 20.0), seed=1)
    carried(new, old)
    name = "item_tower.features.encoders.0.table.weight"
    assert torch.equal(rows_of(new.model, name), rows_of(old.model, name)[[0, 2, 3, 3]])


def test_one_bucket_of_no_width_goes_on_too() -> None:
    old = World(OLD_USERS, OLD_ITEMS, make_spec(), schema=bucket_schema(7.0))
    new = World(OLD_USERS, OLD_ITEMS, make_spec(), schema=bucket_schema(7.0), seed=1)
    carried(new, old)
    name = "item_tower.features.encoders.0.table.weight"
    assert torch.equal(rows_of(new.model, name), rows_of(old.model, name))


def test_a_number_one_unit_larger_moves_a_vector_as_far_as_before() -> None:
    spec, kinds = make_spec(), {"size": "numeric"}
    old = World(OLD_USERS, OLD_ITEMS, spec, kinds=kinds)
    new = World(OLD_USERS, [f"i{n}" for n in range(30)], spec, kinds=kinds, seed=1)
    assert old.schema.specs[0].scale != new.schema.specs[0].scale
    carried(new, old)
    # i5 and i9 are items of both: 25 and 81.
    steps = []
    for world in (old, new):
        ids = world.items.rows(["i5", "i9"])
        sizes = world.schema.encode(pa.table({"size": [25.0, 26.0]}))
        low, high = world.model.embed_candidates(ids[[0, 0]], sizes)
        steps.append(high - low)
    assert_close(steps[0], steps[1], rtol=1e-3, atol=1e-6)


def test_a_feature_of_another_kind_or_size_starts_afresh_and_is_named() -> None:
    spec = make_spec()
    old = World(OLD_USERS, OLD_ITEMS, spec)
    kinds = {"price": "numeric", "title": "text", "genre": "multi", "tags": "multi"}
    new = World(OLD_USERS, OLD_ITEMS, spec, kinds=kinds, buckets=16, seed=1)
    untouched = World(OLD_USERS, OLD_ITEMS, spec, kinds=kinds, buckets=16, seed=1)
    what = carried(new, old)
    assert what.fresh_features == {
        "items.price": "it is numeric here, bucket in the bundle",
        "items.title": "its size is 16 here, 8 in the bundle",
        "items.genre": "it is multi here, categorical in the bundle",
    }
    assert (what.kept, what.new) == (("items.tags",), ())
    assert what.dropped == ("items.size", "items.picture")
    assert what.counts() == {"kept": 1, "new": 3, "dropped": 2}
    state, fresh = new.model.state_dict(), untouched.model.state_dict()
    for place, is_fresh in enumerate([True, True, True, False]):
        for name in state:
            if name.startswith(f"item_tower.features.encoders.{place}."):
                assert torch.equal(state[name], fresh[name]) == is_fresh


def test_concatenated_pieces_keep_their_columns_when_features_come_go_and_move() -> None:
    spec = make_spec(item={"combine": "concat"})
    old = World(OLD_USERS, OLD_ITEMS, spec, kinds={"genre": "categorical", "title": "text"})
    kinds = {"title": "text", "size": "numeric", "genre": "categorical"}
    new = World(OLD_USERS, OLD_ITEMS, spec, kinds=kinds, seed=1)
    what = carried(new, old)
    assert (what.new, what.fresh_layers) == (("items.size",), ())
    weight = new.model.item_tower.state_dict()["combine.layers.0.weight"]
    before = old.model.item_tower.state_dict()["combine.layers.0.weight"]
    # Pieces of width 4: id, title, size, genre here; id, genre, title there.
    for here, there in ((0, 0), (1, 2), (3, 1)):
        block = weight[:, 4 * here : 4 * here + 4]
        assert torch.equal(block, before[:, 4 * there : 4 * there + 4])


def test_a_tower_of_one_piece_goes_on_where_another_piece_joins_it() -> None:
    spec = make_spec(item={"combine": "concat"})
    old = World(OLD_USERS, OLD_ITEMS, spec, kinds={})
    new = World(OLD_USERS, OLD_ITEMS, spec, kinds={"size": "numeric"}, seed=1)
    assert carried(new, old).fresh_layers == ()
    here, there = (one.model.item_tower.state_dict() for one in (new, old))
    assert torch.equal(here["combine.layers.0.bias"], there["combine.layers.0.bias"])
    weight, before = here["combine.layers.0.weight"], there["combine.layers.0.weight"]
    assert weight.shape == (4, 8)
    assert torch.equal(weight[:, :4], before)
