"""From evaluation queries to the bonus of what each user had before."""

from collections.abc import Callable

from recsys.evaluation.queries import EvaluationQueries
from recsys.index import OwnItems
from recsys.models import TwoTower

Bonus = Callable[[EvaluationQueries], OwnItems]
"""Gives the own items of a block of queries, and their bonus."""


def bonus_of(model: TwoTower) -> Bonus | None:
    """Give what a model adds to the scores of items that users had; None: nothing."""
    repeats = model.repeats
    if repeats is None:
        return None
    return lambda queries: OwnItems(*repeats.bonus(queries.histories))


def own_items(
    bonus: Bonus | None, queries: EvaluationQueries, *, exclude_seen: bool
) -> OwnItems | None:
    """Give the own items of queries; None where nothing is added, or none of them may be given."""
    return None if bonus is None or exclude_seen else bonus(queries)
