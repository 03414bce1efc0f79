"""The state of an object that is made of parts, each under its name."""

from collections.abc import Mapping

from torch import Tensor

from recsys.foundations import FormatError


def join_parts(**parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the states of all parts as one: ``<part>.<name>``."""
    return {f"{part}.{name}": v for part, state in parts.items() for name, v in state.items()}


def split_parts(state: Mapping[str, Tensor], *names: str) -> list[dict[str, Tensor]]:
    """Give the state of each part, in the order of the names; empty for a part without one.

    Raises:
        FormatError: Something belongs to no part: it was written by another loss.
    """
    parts: dict[str, dict[str, Tensor]] = {name: {} for name in names}
    for key, value in state.items():
        part, _, name = key.partition(".")
        if part not in parts:
            raise FormatError(
                f"The checkpoint's loss must hold the state of {', '.join(names)} only, got {key}."
            )
        parts[part][name] = value
    return list(parts.values())
