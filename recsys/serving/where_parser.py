"""Read a `where` expression.

expression = conjunction ("or" conjunction)*
conjunction = part ("and" part)*
part = "not" part | "(" expression ")" | column test
test = ("=" | "!=" | "<" | "<=" | ">" | ">=") value
     | ["not"] "in" "[" value ("," value)* "]"
     | ["not"] "contains" value
     | "is" ["not"] "null"
"""

from collections.abc import Callable

from recsys.serving.where_tree import AllOf, AnyOf, Not, Predicate, Tree
from recsys.serving.where_words import Word, refusal, split_words

_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
_DEEPEST = 50


def parse_where(text: str) -> Tree:
    """Read an expression.

    Raises:
        ArgumentError: It is none; the message names the position and what was expected there.
    """
    reader = _Reader(split_words(text))
    tree = reader.expression()
    reader.take("end", "", expected="and, or, or the end")
    return tree


class _Reader:
    """Reads words from left to right."""

    def __init__(self, words: list[Word]) -> None:
        self._words, self._next, self._depth = words, 0, 0

    def expression(self) -> Tree:
        parts = self._separated("or", self._conjunction)
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def take(self, kind: str, text: str, *, expected: str) -> Word:
        """Go past a word that must be there."""
        if not self._is(kind, text):
            raise self._unexpected(expected)
        return self._advance()

    def _conjunction(self) -> Tree:
        parts = self._separated("and", self._part)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _separated(self, keyword: str, read: Callable[[], Tree]) -> list[Tree]:
        parts = [read()]
        while self._accept("keyword", keyword):
            parts.append(read())
        return parts

    def _part(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise refusal(self._word, f"more than {_DEEPEST} parts stand inside one another")
        tree = self._nested() or self._predicate()
        self._depth -= 1
        return tree

    def _nested(self) -> Tree | None:
        if self._accept("keyword", "not"):
            return Not(self._part())
        if not self._accept("sign", "("):
            return None
        inner = self.expression()
        self.take("sign", ")", expected="and, or, or )")
        return inner

    def _predicate(self) -> Tree:
        if self._word.kind not in ("word", "name"):
            raise self._unexpected("a column, not, or (")
        column = self._advance()
        sign = self._word
        if sign.kind == "sign" and sign.text in _SIGNS:
            self._advance()
            equal = Predicate(column, "=" if sign.text == "!=" else sign.text, sign, self._values())
            return Not(equal) if sign.text == "!=" else equal
        if self._accept("keyword", "is"):
            negated = self._accept("keyword", "not")
            self.take("keyword", "null", expected="null" if negated else "null or not null")
            return _perhaps_not(negated, Predicate(column, "null", sign, ()))
        negated = self._accept("keyword", "not")
        sign = self._word
        if self._accept("keyword", "in"):
            return _perhaps_not(negated, Predicate(column, "=", sign, self._list()))
        if self._accept("keyword", "contains"):
            return _perhaps_not(negated, Predicate(column, "contains", sign, self._values()))
        raise self._unexpected(
            "in or contains" if negated else "one of = != < <= > >= in contains is not"
        )

    def _list(self) -> tuple[Word, ...]:
        self.take("sign", "[", expected="[ and values, as in [DE, FR]")
        values = [*self._values()]
        while self._accept("sign", ","):
            values += self._values()
        self.take("sign", "]", expected=", or ]")
        return tuple(values)

    def _values(self) -> tuple[Word]:
        """Read one value."""
        if self._word.kind == "keyword":
            hint = "is null asks for a missing one" if self._word.text == "null" else "quote it"
            raise self._unexpected(f"a value ({hint})")
        if self._word.kind not in ("word", "quoted"):
            raise self._unexpected("a value")
        return (self._advance(),)

    @property
    def _word(self) -> Word:
        return self._words[self._next]

    def _is(self, kind: str, text: str) -> bool:
        return self._word.kind == kind and self._word.text == text

    def _accept(self, kind: str, text: str) -> bool:
        """Go past a word if it is there."""
        there = self._is(kind, text)
        self._next += there
        return there

    def _advance(self) -> Word:
        word = self._word
        self._next += 1
        return word

    def _unexpected(self, expected: str) -> Exception:
        word, before = self._word, self._words[max(self._next - 1, 0)]
        message = f"expected {expected}, got {word.shown()}"
        if expected.startswith("and") and word.kind == before.kind == "word":
            message += "; what has blanks in it must stand in quotes"
        return refusal(word, message)


def _perhaps_not(negated: bool, part: Predicate) -> Tree:
    return Not(part) if negated else part
