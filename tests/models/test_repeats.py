"""Counts of what a history holds, by hand and against a slow loop; what a specification says."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import FeatureSchema
from recsys.foundations import ConfigError, FormatError, Ragged
from recsys.models import (
    ModelSpec,
    Repeats,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    decayed_counts,
)


def make_histories(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)])
    return Ragged(offsets, np.array([row for rows in lists for row in rows], np.int64))


def make_model(**spec: Any) -> TwoTower:
    nothing = FeatureSchema()
    return build_two_tower(
        ModelSpec(embedding_dim=4, user_tower=UserTowerSpec(history_length=3), **spec),
        num_users=2,
        num_items=5,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
    )


def test_the_bonus_equals_the_value_worked_by_hand() -> None:
    # Ages from the newest: 7 has 0 and 2, 4 has 1; the first 7 has age 3 and is not read.
    # c(7) = 1 + 0.5^2 = 1.25, c(4) = 0.5; 2 log(1 + c).
    repeats = Repeats(2.0, 0.5, 3)
    rows, bonus = repeats.bonus(make_histories([[7, 7, 4, 7], []]))
    assert [rows[0].tolist(), rows[1].tolist()] == [[4, 7], []]
    np.testing.assert_allclose(bonus, [2 * np.log(1.5), 2 * np.log(2.25)], rtol=1e-15)


def test_an_event_of_no_item_takes_a_place_and_counts_for_none() -> None:
    rows, counts = decayed_counts(make_histories([[3, -1, 3]]), decay=0.5, length=10)
    assert rows.rows.tolist() == [3]
    assert counts.tolist() == [1.25]


@given(
    lists=st.lists(st.lists(st.integers(-1, 6), max_size=12), max_size=8),
    decay=st.floats(0.01, 1),
    length=st.integers(1, 15),
)
def test_counts_equal_a_slow_loop_and_do_not_depend_on_the_other_histories(
    lists: list[list[int]], decay: float, length: int
) -> None:
    rows, counts = decayed_counts(make_histories(lists), decay=decay, length=length)
    for place, history in enumerate(lists):
        slow: dict[int, float] = {}
        for age, item in enumerate(history[::-1][:length]):
            slow[item] = slow.get(item, 0.0) + decay**age
        slow.pop(-1, None)
        here = slice(rows.offsets[place], rows.offsets[place + 1])
        assert rows.rows[here].tolist() == sorted(slow)
        np.testing.assert_allclose(counts[here], [slow[item] for item in sorted(slow)], rtol=1e-12)
        alone = decayed_counts(make_histories([history]), decay=decay, length=length)
        assert alone[1].tolist() == counts[here].tolist()


def test_a_model_has_a_bonus_where_its_weight_is_above_0_over_the_history_that_it_reads() -> None:
    assert make_model().repeats is None
    model = make_model()
    width = model.output_dim
    model.set_repeats(4.0, 0.9)
    assert model.repeats == Repeats(4.0, 0.9, 3)
    assert (model.spec.repeats_weight, model.spec.repeats_decay) == (4.0, 0.9)
    assert model.output_dim == width
    assert make_model(repeats_weight=4.0, repeats_decay=0.9).repeats == model.repeats


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repeats_weight": -1.0}, "model.repeats.weight must be at least 0, got -1.0"),
        ({"repeats_weight": float("nan")}, "model.repeats.weight must be at least 0, got nan"),
        ({"repeats_decay": 0.0}, "model.repeats.decay must be above 0 and at most 1, got 0.0"),
        ({"repeats_decay": 1.1}, "model.repeats.decay must be above 0 and at most 1, got 1.1"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_model(**changes)
    spec = make_model().spec
    with pytest.raises(ConfigError, match=r"model.repeats.weight=2 needs histories"):
        replace(spec, user_tower=UserTowerSpec(history="none"), repeats_weight=2.0)


def test_a_specification_survives_json_and_is_refused_without_repeats() -> None:
    spec = ModelSpec(repeats_weight=3.0, repeats_decay=0.9)
    plain = json.loads(json.dumps(spec.to_json()))
    assert ModelSpec.from_json(plain) == spec
    older = {name: x for name, x in plain.items() if not name.startswith("repeats_")}
    with pytest.raises(FormatError, match="`repeats_weight` is missing"):
        ModelSpec.from_json(older)
    with pytest.raises(FormatError, match="repeats_weight"):
        ModelSpec.from_json(plain | {"repeats_weight": "much"})
