"""Names and values in the form that a tracking store takes."""

import json
import re
from collections.abc import Mapping
from typing import Any

from recsys.foundations import ArgumentError

_LONGEST_NAME = 250  # of a metric, parameter or tag, in MLflow


def legal_metric_name(name: str) -> str:
    """Give the name under which a metric (or parameter) is recorded, everywhere the same.

    "@" becomes "_at_" (``recall@10`` is ``recall_at_10``), any other character but letters,
    digits, ``_ - . /`` and blanks becomes "_", empty and dotted path parts go, 250 characters
    stay.

    Raises:
        ArgumentError: Nothing is left of the name.
    """
    spelt = re.sub(r"[^\w\-. /]", "_", name.replace("@", "_at_"))
    parts = [part for part in spelt.split("/") if part.strip(". ")]
    if not parts:
        raise ArgumentError(f"`name` must hold a letter or digit, got {name!r}.")
    return "/".join(parts)[:_LONGEST_NAME].rstrip("/")


def flatten_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings to dotted names; lists stay whole.

    Args:
        settings: Mappings with text keys, to any depth.
        prefix: Stands in front of every name.
    """
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def plain(value: Any) -> Any:
    """Give the value in JSON's types; whatever JSON does not know becomes its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return without_credentials(value)
    return value if value is None or type(value) in (bool, int, float) else str(value)


def parameter_text(value: Any) -> str:
    """Give a setting's value as text: texts as they are, all else as JSON."""
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def without_credentials(text: str) -> str:
    """Hide user names and passwords inside addresses: ``http://me:secret@host`` -> ``***@``."""
    return re.sub(r"(?<=://)[^/@\s]+@", "***@", text)
