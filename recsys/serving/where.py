"""`where`: an expression over item columns, as a bitmap over the candidates.

Dimensions: N candidates.
"""

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.serving.where_columns import ItemColumn, NotComparableError, item_columns
from recsys.serving.where_parser import parse_where
from recsys.serving.where_tree import AllOf, Not, Predicate, Tree
from recsys.serving.where_words import Word, check_text, refusal

_CACHE_BYTES = 1 << 26  # of all bitmaps that are kept
_MOST_KEPT = 256
_MOST_NAMED = 20


class Where:
    """Answers which candidates an expression lets pass; the latest answers are kept.

    At most 256 bitmaps of at most 64 MiB together are kept, one byte a candidate.

    Args:
        bundle: The bundle.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        most = min(max(_CACHE_BYTES // max(bundle.num_items, 1), 1), _MOST_KEPT)
        self._kept = lru_cache(maxsize=most)(self._compute)

    def mask(self, expression: str) -> NDArray[np.bool_]:
        """Compute which candidates pass.

        Args:
            expression: As docs/serving.md explains.

        Returns:
            [N]; must not be written to.

        Raises:
            ArgumentError: The expression is no text, cannot be read, names a column that the bundle
                does not keep, or compares what cannot be compared; the message says where.
        """
        check_text(expression)
        return self._kept(expression)

    @cached_property
    def _columns(self) -> dict[str, ItemColumn]:
        return item_columns(self._bundle)

    def _compute(self, expression: str) -> NDArray[np.bool_]:
        mask = self._evaluate(parse_where(expression))
        mask.flags.writeable = False
        return mask

    def _evaluate(self, tree: Tree) -> NDArray[np.bool_]:
        if isinstance(tree, Predicate):
            return self._predicate(tree)
        if isinstance(tree, Not):
            return ~self._evaluate(tree.part)
        mask = self._evaluate(tree.parts[0])
        for part in tree.parts[1:]:
            other = self._evaluate(part)
            mask = mask & other if isinstance(tree, AllOf) else mask | other
        return mask

    def _predicate(self, asked: Predicate) -> NDArray[np.bool_]:
        column = self._column(asked.column)
        if asked.operator == "null":
            return column.missing
        value = asked.values[0]
        try:
            if asked.operator == "contains":
                return column.contains(value)
            sides = []
            for value in asked.values:
                sides.append(column.sides(asked.operator, value))
        except NotComparableError as error:
            place = asked.sign if error.whatever_the_value else value
            raise refusal(place, str(error)) from error
        if asked.operator == "=":
            return column.equals_any(sides)
        return column.compare(asked.operator, sides[0])

    def _column(self, name: Word) -> ItemColumn:
        if name.text in self._columns:
            return self._columns[name.text]
        kinds = {spec.name: spec.kind for spec in self._bundle.items.features.schema}
        if name.text in kinds:
            lacks = f"the bundle does not keep the values of {name.shown()}, only their encoding"
            if kinds[name.text] == "multi":  # which every bundle does that is written now
                lacks += "; an older release wrote it: prepare the data and train again"
            raise refusal(name, lacks)
        names = list(self._columns)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        there = ", ".join(names[:_MOST_NAMED]) + more
        raise refusal(name, f"there is no column {name.shown()}; there are {there}")
