"""Checks of arguments: each raises one sentence that names the argument, or returns nothing."""

from collections.abc import Collection
from numbers import Integral
from typing import Any

from recsys.foundations.errors import ArgumentError, ShapeError

_INTEGERS = ("int64", "int32", "int16")


def check_shape(name: str, tensor: Any, *shape: int | None) -> None:
    """Check that a tensor or array has the given shape; None stands for any size.

    Raises:
        ShapeError: The number of dimensions or one size differs.
    """
    actual = tuple(tensor.shape)
    if len(actual) == len(shape) and all(
        want is None or want == got for want, got in zip(shape, actual, strict=True)
    ):
        return
    wanted = ", ".join("any" if size is None else str(size) for size in shape)
    raise ShapeError(f"`{name}` must have shape [{wanted}], got {list(actual)}.")


def check_positive(name: str, value: float) -> None:
    """Check that a number is above 0; NaN is refused.

    Raises:
        ArgumentError: It is not.
    """
    if not value > 0:
        raise ArgumentError(f"`{name}` must be above 0, got {value}.")


def check_integers(name: str, tensor: Any) -> None:
    """Check that a tensor or array holds integers, as rows, places and columns must be.

    Fractions would be cut off, and booleans and bytes select as masks do.

    Raises:
        ArgumentError: It holds something else.
    """
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in _INTEGERS:
        raise ArgumentError(f"`{name}` must hold int64, got {kind}.")


def check_floats(name: str, tensor: Any) -> None:
    """Check that a tensor or array holds floating-point numbers.

    Raises:
        ArgumentError: It holds something else.
    """
    kind = str(tensor.dtype).removeprefix("torch.")
    if "float" not in kind:
        raise ArgumentError(f"`{name}` must hold floating-point numbers, got {kind}.")


def check_count(name: str, value: Any) -> None:
    """Check that a number is a whole one, at least 1.

    Raises:
        ArgumentError: It is not.
    """
    check_positive(name, value)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentError(f"`{name}` must be a whole number, got {value}.")


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Check that a name is one of the choices.

    Raises:
        ArgumentError: It is not; the message lists the choices.
    """
    if value not in choices:
        raise ArgumentError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}.")
