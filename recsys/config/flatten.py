"""Settings as plain values: dotted keys, or dictionaries for JSON and YAML."""

import dataclasses
from typing import Any

from recsys.config.groups import choice_of


def flatten(config: Any) -> dict[str, Any]:
    """Flatten a stage's settings to dotted keys; lists and dictionaries of values stay whole.

    A group whose choices differ in their keys also has its own name as a key, with the choice:
    `loss` is `in_batch`.
    """
    flat: dict[str, Any] = {}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        choice = choice_of(item.name, value)
        if choice is not None:
            flat[item.name] = choice
        flat |= _flatten(item.name, value)
    return flat


def _flatten(key: str, value: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(value):
        return {key: to_plain(value)}
    flat: dict[str, Any] = {}
    for item in dataclasses.fields(value):
        flat |= _flatten(f"{key}.{item.name}", getattr(value, item.name))
    return flat


def to_plain(value: Any) -> Any:
    """Turn dataclasses inside into dictionaries, for JSON and YAML."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value
