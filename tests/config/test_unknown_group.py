"""A choice for a group that a command does not have."""

import pytest

from recsys.config import BenchmarkConfig, PrepareConfig, TrainConfig, compose_config
from recsys.config.unknown_group import explain_unknown_group
from recsys.foundations import ConfigError


@pytest.mark.parametrize(
    ("stage", "schema", "setting", "words"),
    [
        (
            "prepare",
            PrepareConfig,
            ("experiment", "tiny"),
            "experiment is not a group of prepare, which has the groups split, features and "
            "dataset.",
        ),
        (
            "benchmark",
            BenchmarkConfig,
            ("tracking", "none"),
            "tracking is not a group of benchmark, which has the groups model and optimizer.",
        ),
        ("train", TrainConfig, ("model@other", "ids"), "Did you mean to override model?"),
    ],
)
def test_the_groups_that_there_are_are_named(
    stage: str, schema: type, setting: tuple[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        compose_config(stage, schema, dict([setting]))
    assert str(refused.value).endswith(words)


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (
            "train",
            "the groups split, features, dataset, model, loss, sampler, popularity, streams, ",
        ),
        ("index", "the group index."),
        ("explain", "none."),
    ],
)
def test_one_group_and_none_are_told_apart_from_several(stage: str, words: str) -> None:
    text = "Could not override 'x'. No match in the defaults list.\nTo append"
    said = explain_unknown_group(text, stage) or ""
    assert said.startswith(f"x is not a group of {stage}, which has {words}")


def test_a_command_of_somebody_else_has_no_list() -> None:
    text = "Could not override 'x'. No match in the defaults list."
    assert explain_unknown_group(text, "other") == "x is not a group of this command."
