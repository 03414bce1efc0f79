"""The words of a `where` expression: names, values and signs, each with its place in the text."""

import re
from dataclasses import dataclass

from recsys.foundations import ArgumentError

KEYWORDS = frozenset({"and", "or", "not", "in", "contains", "is", "null"})
_WORDS = re.compile(
    r"""\s+
    | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | `(?P<name>[^`]+)`
    | (?P<sign><=|>=|!=|[=<>()\[\],])
    | (?P<word>[^\s()\[\],=<>!"'`]+)""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_SHOWN = 40


@dataclass(frozen=True)
class Word:
    """One word.

    Attributes:
        kind: "word"; "quoted", a text in quotes; "name", a column in backticks; "sign"; "keyword",
            of which `text` is in small letters; "end".
        text: Without quotes.
        place: Of its first character, from 1.
    """

    kind: str
    text: str
    place: int

    @property
    def is_number(self) -> bool:
        """Tell whether it reads as a number; what stands in quotes is text."""
        return self.kind == "word" and _NUMBER.fullmatch(self.text) is not None

    def shown(self) -> str:
        """Give it for a message."""
        if self.kind == "end":
            return "the end"
        short = self.text if len(self.text) <= _LONGEST_SHOWN else self.text[:_LONGEST_SHOWN] + "…"
        return f"'{short}'"


def check_text(expression: object) -> None:
    """Check that an expression is a text of whole characters.

    Raises:
        ArgumentError: It is something else, or holds half of a surrogate pair.
    """
    if not isinstance(expression, str):
        raise ArgumentError(f"`where` must be a text, got {type(expression).__name__}.")
    half = _SURROGATE.search(expression)
    if half is not None:
        raise ArgumentError(f"`where`, position {half.start() + 1}: this is no whole character.")


def split_words(text: str) -> list[Word]:
    """Split an expression; the last word is the end.

    Raises:
        ArgumentError: A quote is not closed, or a character has no meaning.
    """
    words, place = [], 0
    while place < len(text):
        found = _WORDS.match(text, place)
        if found is None:
            raise _strange(text, place)
        if found.lastgroup is not None:
            words.append(_word(found.lastgroup, found[found.lastgroup], place + 1))
        place = found.end()
    return [*words, Word("end", "", len(text) + 1)]


def refusal(word: Word, message: str) -> ArgumentError:
    """Make the error of an expression that is wrong at a word."""
    return ArgumentError(f"`where`, position {word.place}: {message}.")


def _word(kind: str, text: str, place: int) -> Word:
    if kind == "word" and text.lower() in KEYWORDS:
        return Word("keyword", text.lower(), place)
    if kind == "quoted":
        text = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    return Word(kind, text, place)


def _strange(text: str, place: int) -> ArgumentError:
    word = Word("sign", text[place], place + 1)
    if text[place] in "\"'`":
        return refusal(word, f"the quote {text[place]} is not closed")
    return refusal(word, f"{word.shown()} is no sign; there are = != < <= > >= ( ) [ ] and ,")
