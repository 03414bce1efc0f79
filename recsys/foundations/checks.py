"""Checks of arguments: each raises one sentence that names the argument, or returns nothing."""

from collections.abc import Collection
from typing import Any

from recsys.foundations.errors import ArgumentError, ShapeError


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


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Check that a name is one of the choices.

    Raises:
        ArgumentError: It is not; the message lists the choices.
    """
    if value not in choices:
        raise ArgumentError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}.")
