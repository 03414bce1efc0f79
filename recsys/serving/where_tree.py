"""A `where` expression as a tree."""

from dataclasses import dataclass

from recsys.serving.where_words import Word


@dataclass(frozen=True)
class Predicate:
    """What is asked of one column.

    Attributes:
        column: Its name.
        operator: "=" for equal to one of the values, "<", "<=", ">", ">=", "contains", or "null".
        sign: The operator as written.
        values: One; with "=" one or more; with "null" none.
    """

    column: Word
    operator: str
    sign: Word
    values: tuple[Word, ...]


@dataclass(frozen=True)
class Not:
    """The opposite."""

    part: "Tree"


@dataclass(frozen=True)
class AllOf:
    """All parts hold."""

    parts: tuple["Tree", ...]


@dataclass(frozen=True)
class AnyOf:
    """One part holds or more."""

    parts: tuple["Tree", ...]


Tree = Predicate | Not | AllOf | AnyOf
