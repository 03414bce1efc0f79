"""One of several settings, by how well each does on validation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from recsys.baselines.interactions import Interactions
from recsys.foundations import ArgumentError

Ranker = TypeVar("Ranker")


@dataclass(frozen=True)
class Option(Generic[Ranker]):
    """A baseline with its settings.

    Attributes:
        settings: For people.
        fit: Learn from interactions.
    """

    settings: Mapping[str, Any]
    fit: Callable[[Interactions], Ranker]


@dataclass(frozen=True)
class Attempt:
    """Settings that were tried, and what they scored."""

    settings: Mapping[str, Any]
    score: float


@dataclass(frozen=True)
class Choice(Generic[Ranker]):
    """What was chosen.

    Attributes:
        option: The settings of the highest score, the first of equal ones.
        attempts: All that was tried; empty where nothing had to be compared.
    """

    option: Option[Ranker]
    attempts: tuple[Attempt, ...]


def choose(
    options: Sequence[Option[Ranker]],
    interactions: Interactions,
    score: Callable[[Ranker], float] | None,
) -> Choice[Ranker]:
    """Choose the settings that score highest.

    Args:
        options: At least one.
        interactions: What each is fitted on.
        score: Higher is better; None where there is nothing to score on: the first is taken.

    Raises:
        ArgumentError: There are no options.
    """
    if not options:
        raise ArgumentError("`options` must hold at least one, got none.")
    if score is None or len(options) == 1:
        return Choice(options[0], ())
    scores = [score(option.fit(interactions)) for option in options]
    attempts = tuple(
        Attempt(option.settings, value) for option, value in zip(options, scores, strict=True)
    )
    return Choice(options[scores.index(max(scores))], attempts)
