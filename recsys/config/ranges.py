"""Checks of settings: each raises one sentence that names the key, or returns nothing."""

from collections.abc import Collection
from pathlib import PurePath
from typing import Any

from recsys.foundations import ConfigError
from recsys.index import LARGEST_ALPHA

_MOST_THREADS = 1024
_TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl")


def at_least(key: str, value: float, least: float) -> None:
    """Check a lower bound; NaN and infinity are refused."""
    if not least <= value < float("inf"):
        raise ConfigError(f"{key} must be at least {least:g}, got {value}.")


def above(key: str, value: float, bound: float) -> None:
    """Check a strict lower bound; NaN and infinity are refused."""
    if not bound < value < float("inf"):
        raise ConfigError(f"{key} must be above {bound:g}, got {value}.")


def share(key: str, value: float) -> None:
    """Check a share in [0, 1)."""
    if not 0 <= value < 1:
        raise ConfigError(f"{key} must be at least 0 and below 1, got {value}.")


def between(key: str, value: float, low: float, high: float) -> None:
    """Check that a number lies between two bounds, neither of which it may be."""
    if not low < value < high:
        raise ConfigError(f"{key} must lie between {low:g} and {high:g}, got {value}.")


def within(key: str, value: float, least: float, most: float) -> None:
    """Check that a number lies between two bounds, either of which it may be."""
    if not least <= value <= most:
        raise ConfigError(f"{key} must be from {least:g} to {most:,.12g}, got {value}.")


def threads(key: str, value: int | None) -> None:
    """Check a number of threads; None is for others to choose."""
    if value is not None:
        within(key, value, 1, _MOST_THREADS)


def numbers(key: str, value: Any) -> list[float]:
    """Check a number or a list of some; give them as a list."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(type(x) in (int, float) for x in listed):
        raise ConfigError(f"{key} must be a number or a list of some, got {value!r}.")
    return [float(x) for x in listed]


def alpha(key: str, value: float) -> None:
    """Check a popularity dial; NaN and infinity are refused."""
    if not -LARGEST_ALPHA <= value <= LARGEST_ALPHA:
        bounds = f"{-LARGEST_ALPHA:g} and {LARGEST_ALPHA:g}"
        raise ConfigError(f"{key} must lie between {bounds}, got {value}.")


def one_of(key: str, value: str, choices: Collection[str]) -> None:
    """Check a choice by name."""
    if value not in choices:
        raise ConfigError(f"{key} must be one of {', '.join(choices)}, got {value!r}.")


def parquet_file(key: str, value: str) -> None:
    """Check the name of a Parquet file to be written: none that promises text."""
    if any(suffix.lower() in _TEXT_SUFFIXES for suffix in PurePath(value).suffixes):
        raise ConfigError(f"{key} must end in .parquet, the format that is written, got {value!r}.")
