"""Checks that a checkpoint's tensors are those of the object that is to take them up."""

from collections.abc import Collection, Mapping

from torch import Tensor

from recsys.foundations import FormatError


def check_state_names(state: Mapping[str, Tensor], names: Collection[str]) -> None:
    """Check that a state holds exactly these names.

    Raises:
        FormatError: It does not: it was written by something else.
    """
    if set(state) != set(names):
        raise FormatError(
            f"The checkpoint's state must hold {', '.join(sorted(names))}, got {sorted(state)}."
        )


def check_state_like(state: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> None:
    """Check that a state holds the names of another, each with its shape and dtype.

    Raises:
        FormatError: It does not: it was written under other settings.
    """
    check_state_names(state, like)
    for name, tensor in like.items():
        got = state[name]
        if (got.shape, got.dtype) != (tensor.shape, tensor.dtype):
            raise FormatError(
                f"`{name}` of the checkpoint's state must be {_describe(tensor)}, "
                f"got {_describe(got)}."
            )


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {list(tensor.shape)}"
