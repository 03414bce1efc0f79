"""Checks of arguments, and the tree of errors."""

import numpy as np
import pytest
import torch

from recsys import foundations
from recsys.foundations import (
    ArgumentError,
    RecsysError,
    ShapeError,
    check_choice,
    check_count,
    check_floats,
    check_integers,
    check_positive,
    check_shape,
)


def test_a_shape_that_fits_passes() -> None:
    check_shape("scores", torch.zeros(2, 3), 2, 3)
    check_shape("scores", np.zeros((2, 0)), None, 0)
    check_shape("scores", torch.tensor(1.0))


@pytest.mark.parametrize(
    ("shape", "wanted"), [((2, 4), "2, 4"), ((None,), "any"), ((None, 3, 1), "any, 3, 1")]
)
def test_a_shape_that_does_not_fit_is_named(shape: tuple[int | None, ...], wanted: str) -> None:
    with pytest.raises(ShapeError) as refusal:
        check_shape("scores", torch.zeros(2, 3), *shape)
    assert str(refusal.value) == f"`scores` must have shape [{wanted}], got [2, 3]."


def test_positive_numbers_pass_and_others_do_not() -> None:
    check_positive("temperature", 0.1)
    for value in (0.0, -1.0, float("nan")):
        with pytest.raises(ArgumentError, match=f"`temperature` must be above 0, got {value}"):
            check_positive("temperature", value)


def test_rows_are_integers_and_nothing_that_indexing_takes_for_a_mask() -> None:
    for kind in (torch.int64, torch.int32):
        check_integers("rows", torch.zeros(2, dtype=kind))
    check_integers("rows", np.zeros(2, dtype=np.int64))
    for kind in (torch.float32, torch.bool, torch.uint8):
        with pytest.raises(
            ArgumentError, match=r"`rows` must hold int64, got (float32|bool|uint8)"
        ):
            check_integers("rows", torch.zeros(2, dtype=kind))


def test_vectors_are_floating_point_numbers() -> None:
    for kind in (torch.float64, torch.float16, torch.bfloat16):
        check_floats("queries", torch.zeros(2, dtype=kind))
    with pytest.raises(
        ArgumentError, match="`queries` must hold floating-point numbers, got int64"
    ):
        check_floats("queries", np.zeros(2, dtype=np.int64))


def test_counts_are_whole_and_at_least_one() -> None:
    check_count("num_sampled", 1)
    check_count("num_sampled", np.int64(3))
    with pytest.raises(ArgumentError, match=r"`num_sampled` must be a whole number, got 1\.5"):
        check_count("num_sampled", 1.5)
    with pytest.raises(ArgumentError, match="`num_sampled` must be above 0, got 0"):
        check_count("num_sampled", 0)


def test_a_choice_that_is_none_is_named_with_the_choices() -> None:
    check_choice("ties", "include", ("include", "exclude"))
    with pytest.raises(ArgumentError) as refusal:
        check_choice("ties", "both", ("include", "exclude"))
    assert str(refusal.value) == "`ties` must be one of include, exclude, got 'both'."


def test_every_error_descends_from_ours_and_from_a_built_in_one_that_fits() -> None:
    built_in = {
        "ArgumentError": ValueError,
        "ConfigError": ValueError,
        "DataError": ValueError,
        "FormatError": ValueError,
        "ShapeError": ValueError,
        "MissingExtraError": ImportError,
        "MissingFileError": FileNotFoundError,
        "TrackingError": ConnectionError,
        "TrainingError": ArithmeticError,
        "UnknownIdError": LookupError,
    }
    named = {name for name in foundations.__all__ if name.endswith("Error")}
    assert named == built_in.keys() | {"RecsysError"}
    for name, parent in built_in.items():
        assert issubclass(getattr(foundations, name), RecsysError)
        assert issubclass(getattr(foundations, name), parent)
