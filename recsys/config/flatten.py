"""Settings as plain values: dotted keys, or dictionaries for JSON and YAML."""

import dataclasses
from typing import Any


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Flatten a dataclass to dotted keys; lists and dictionaries of values stay whole."""
    flat: dict[str, Any] = {}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if dataclasses.is_dataclass(value):
            flat |= flatten(value, f"{prefix}{item.name}.")
        else:
            flat[prefix + item.name] = to_plain(value)
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
