"""Names and values that a tracking store takes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.foundations import ArgumentError
from recsys.tracking import flatten_settings, legal_metric_name


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("recall@10", "recall_at_10"),
        ("test/recall@10", "test/recall_at_10"),
        ("a[0]{x}=,", "a_0__x___"),
        ("loss (mean)", "loss _mean_"),
        ("/x//./../y/", "x/y"),
        ("plain", "plain"),
        ("x" * 300, "x" * 250),
    ],
)
def test_a_name_is_translated_by_one_rule(name: str, legal: str) -> None:
    assert legal_metric_name(name) == legal


@given(st.text())
def test_every_name_becomes_one_that_mlflow_takes_or_is_refused(name: str) -> None:
    try:
        legal = legal_metric_name(name)
    except ArgumentError:
        return
    assert re.fullmatch(r"[/\w.\- ]{1,250}", legal)
    assert "//" not in legal
    assert not legal.startswith("/")
    assert legal_metric_name(legal) == legal


def test_a_name_without_a_letter_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"`name` must hold a letter or digit, got '\.\./'"):
        legal_metric_name("../")


def test_settings_are_flattened_to_dotted_names_and_lists_stay_whole() -> None:
    whole = {"loss": {"temperature": 0.05, "deep": {"a": None}}, "k": [1, 2], "none": {}}
    assert flatten_settings(whole) == {
        "loss.temperature": 0.05,
        "loss.deep.a": None,
        "k": [1, 2],
        "none": {},
    }
