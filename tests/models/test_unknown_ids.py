"""What stands for unknown ids where nothing teaches it."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureTable
from recsys.foundations import ShapeError
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    place_unknown_ids,
    untaught_rows,
)

NOTHING = FeatureSchema()
# Eleven trained items, whose rarest tenth are two; the counts of the second stand for three.
COUNTS = np.array([9, 3, 0, 1, 7, 3, 0, 8, 3, 6, 5, 4, 9])
RAREST = [1, 3, 5, 8]


def make_model(*, user: float = 0.0, item: float = 0.0, **spec: Any) -> TwoTower:
    torch.manual_seed(0)
    spec = {"item_bias": True, "init_std": 1.0} | spec
    model = build_two_tower(
        ModelSpec(
            embedding_dim=4,
            user_tower=UserTowerSpec(use_id=True, id_dropout=user),
            item_tower=ItemTowerSpec(id_dropout=item),
            **spec,
        ),
        num_users=5,
        num_items=len(COUNTS),
        user_schema=NOTHING,
        item_schema=NOTHING,
        context_schema=NOTHING,
        item_counts=COUNTS,
    ).eval()
    if model.item_tower.bias is not None:
        model.item_tower.bias.weight.data.normal_()
    return model


def test_an_unknown_item_is_as_the_rarest_ones_and_an_unknown_user_as_all() -> None:
    model = make_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    place_unknown_ids(model, COUNTS)
    after, changed = model.state_dict(), set()
    for name, value in after.items():
        if not torch.equal(value, before[name]):
            assert torch.equal(value[:-1], before[name][:-1])
            changed.add(name)
    assert changed == {"user_tower.ids.weight", "item_tower.ids.weight", "item_tower.bias.weight"}
    users = before["user_tower.ids.weight"][:-1]
    assert_close(after["user_tower.ids.weight"][-1], users.mean(dim=0))
    for name in ("item_tower.ids.weight", "item_tower.bias.weight"):
        assert_close(after[name][-1], before[name][RAREST].mean(dim=0))


def test_a_cold_candidate_has_the_mean_score_of_the_rarest_items() -> None:
    model = make_model()
    place_unknown_ids(model, COUNTS)
    queries = torch.cat([torch.randn(3, 4), torch.ones(3, 1)], dim=1)
    features = FeatureTable(NOTHING, {}, len(COUNTS))
    scores = queries @ model.embed_candidates(np.arange(len(COUNTS)), features).T
    for cold in (2, 6):
        assert_close(scores[:, cold], scores[:, RAREST].mean(dim=1))


def test_placing_them_twice_changes_nothing_more() -> None:
    model = make_model()
    place_unknown_ids(model, COUNTS)
    once = {name: value.clone() for name, value in model.state_dict().items()}
    place_unknown_ids(model, COUNTS)
    assert all(torch.equal(once[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(("user", "item"), [(0.0, 0.1), (0.1, 0.0), (0.1, 0.1)])
def test_rows_that_dropout_of_ids_trains_are_left_alone(user: float, item: float) -> None:
    found = {name.split("_")[0] for name in untaught_rows(make_model(user=user, item=item), COUNTS)}
    assert found == {side for side, share in (("user", user), ("item", item)) if share == 0}


def test_without_any_trained_item_there_is_nothing_to_go_by() -> None:
    model = make_model(user=0.1)
    model.item_tower.rows.trained.zero_()
    assert untaught_rows(model, COUNTS) == {}
    with pytest.raises(ShapeError, match="item_counts"):
        untaught_rows(model, COUNTS[:3])
