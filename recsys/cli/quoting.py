"""Settings whose values are expressions, which Hydra's grammar must not read."""

import re
from collections.abc import Sequence

_EXPRESSIONS = ("where=",)


def with_quoted_expressions(arguments: Sequence[str]) -> list[str]:
    """Quote the values of expressions for Hydra, to which ``where=a in [b, c]`` is then one text.

    In a sweep, too. What begins with a quote is Hydra's own writing and stays, as do ``null`` and
    nothing.
    """
    return [_quoted(one) if one.startswith(_EXPRESSIONS) else one for one in arguments]


def _quoted(argument: str) -> str:
    key, _, value = argument.partition("=")
    if value.strip() in ("", "null") or value.lstrip().startswith(("'", '"')):
        return argument
    value = re.sub(r"(\\*)\$\{", r"\1\1\\${", value)  # no interpolation
    return f"{key}='" + re.sub(r"(\\*)('|$)", _escaped, value) + "'"


def _escaped(found: re.Match[str]) -> str:
    """Double backslashes in front of a quote, as they would escape it, and escape the quote."""
    return found[1] * 2 + ("\\'" if found[2] else "")
