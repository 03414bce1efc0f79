"""The specification of a model: the values it refuses, and its saved form."""

import json
from typing import Any

import pytest

from recsys.foundations import ConfigError, FormatError
from recsys.models import ItemTowerSpec, ModelSpec, UserTowerSpec


def test_the_saved_form_gives_back_the_same_specification() -> None:
    spec = ModelSpec(
        embedding_dim=8,
        user_tower=UserTowerSpec(features=("age",), context=(), hidden=(32, 16), decay=1),
        item_tower=ItemTowerSpec(use_id=False, combine="concat"),
        normalize=True,
        temperature=0.05,
    )
    assert ModelSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": 3}, "depth"),
        ({"embedding_dim": "8"}, "`embedding_dim` must not be '8'"),
        ({"embedding_dim": 0}, "embedding_dim must be at least 1"),
        ({"normalize": 1}, "`normalize` must not be 1"),
        ({"item_tower": None}, "None"),
        ({"user_tower": {"hidden": [1.5]}}, "`hidden` must not be"),
        ({"user_tower": {"features": [1]}}, "`features` must not be"),
    ],
)
def test_a_damaged_saved_form_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=f"specification is damaged.*{words}"):
        ModelSpec.from_json(ModelSpec().to_json() | change)


def test_a_saved_form_that_lacks_a_setting_is_refused_by_its_name() -> None:
    saved = ModelSpec().to_json()
    del saved["user_tower"]["num_heads"]
    with pytest.raises(FormatError, match="specification is damaged: `num_heads` is missing"):
        ModelSpec.from_json(saved)


@pytest.mark.parametrize("value", [None, [], "x", {}])
def test_something_else_than_a_specification_is_refused(value: Any) -> None:
    with pytest.raises(FormatError, match="specification is damaged"):
        ModelSpec.from_json(value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"history": "lstm"},
            "user_tower.history.encoder must be one of none, mean, recency, attention, gru, "
            "transformer, got 'lstm'",
        ),
        ({"history_table": "both"}, "user_tower.history.table must be one of own, shared"),
        ({"history_length": 0}, "user_tower.history.length must be at least 1, got 0"),
        ({"num_heads": 0}, "user_tower.history.num_heads must be at least 1, got 0"),
        ({"num_layers": 0}, "user_tower.history.num_layers must be at least 1, got 0"),
        ({"num_interests": 0}, "user_tower.history.num_interests must be at least 1, got 0"),
        (
            {"num_interests": 2},
            "user_tower.history.num_interests=2 needs model.user_tower.history.encoder=attention, "
            "got recency",
        ),
        ({"layer_dropout": 1.0}, "user_tower.history.layer_dropout must be at least 0 and below 1"),
        (
            {"positions": "rotary"},
            "user_tower.history.positions must be one of none, absolute, relative, got 'rotary'",
        ),
        ({"decay": 0.0}, "user_tower.history.decay must be above 0 and at most 1, got 0.0"),
        (
            {"decay": float("nan")},
            "user_tower.history.decay must be above 0 and at most 1, got nan",
        ),
        ({"exponent": 1.5}, "user_tower.history.exponent must be from 0 to 1, got 1.5"),
        ({"history_dropout": 1.0}, "user_tower.history.dropout must be at least 0 and below 1"),
        ({"id_dropout": -0.1}, "user_tower.id_dropout must be at least 0 and below 1, got -0.1"),
        ({"hidden": (8, 0)}, r"user_tower.hidden must hold widths of at least 1, got \[8, 0\]"),
        ({"combine": "mean"}, "user_tower: combine must be one of sum, concat, got 'mean'"),
        ({"norm": "rms"}, "user_tower: normalization must be one of none, layer_norm, batch_norm"),
    ],
)
def test_impossible_user_tower_settings_are_refused_by_key(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=f"model.{words}"):
        UserTowerSpec(**settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"embedding_dim": 0}, "model.embedding_dim must be at least 1, got 0"),
        ({"temperature": 0.0}, "model.temperature.initial must be above 0, got 0.0"),
        ({"temperature": float("nan")}, "model.temperature.initial must be above 0, got nan"),
        ({"init_std": float("inf")}, "model.init_std must be above 0, got inf"),
        (
            {"learn_temperature": True, "temperature": 0.01},
            "model.temperature.initial must lie between model.temperature.minimum",
        ),
        (
            {"user_tower": UserTowerSpec(history="transformer", num_heads=3)},
            "model.embedding_dim must be a multiple of model.user_tower.history.num_heads, "
            "got 64 for 3",
        ),
        (
            {
                "user_tower": UserTowerSpec(history_table="shared"),
                "item_tower": ItemTowerSpec(use_id=False),
            },
            "model.item_tower.use_id=false leaves out",
        ),
    ],
)
def test_impossible_model_settings_are_refused_by_key(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelSpec(**settings)
