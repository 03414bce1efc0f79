"""The item columns that a `where` expression may ask about, by what they hold.

Dimensions: N candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import as_lists, as_text, is_list, is_text, whole_column
from recsys.serving.where_words import Word

Mask = NDArray[np.bool_]
Sides = tuple[pa.Array, Any]  # of a comparison: [N], and one value
_ORDERS = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater}
_ORDERS |= {">=": pc.greater_equal}


class NotComparableError(Exception):
    """A value, or an operator with any value, does not fit a column; the message says why."""

    def __init__(self, message: str, *, whatever_the_value: bool = False) -> None:
        super().__init__(message)
        self.whatever_the_value = whatever_the_value


@dataclass(frozen=True)
class ItemColumn:
    """A column of the candidates.

    Attributes:
        name: As in the item table; the ids are `item_id`.
        values: [N]; null where nothing is known.
        separator: What stands between the values of one text; None: nothing.
        is_id: Whether digits are text, too.
    """

    name: str
    values: pa.Array
    separator: str | None = None
    is_id: bool = False

    @cached_property
    def missing(self) -> Mask:
        """Tell which candidates have no value: null, NaN, an empty text or an empty list."""
        kind, values = self.values.type, self.values
        missing = values.is_null(nan_is_null=bool(pa.types.is_floating(kind)))
        if is_text(kind):
            missing = pc.or_(missing, pc.fill_null(pc.equal(values, ""), True))
        elif is_list(kind):
            missing = pc.or_(missing, pc.fill_null(pc.equal(pc.list_value_length(values), 0), True))
        return _as_mask(missing)

    def compare(self, operator: str, sides: Sides) -> Mask:
        """Tell which candidates stand in that relation to a value; a missing one in none.

        Args:
            operator: "=", "<", "<=", ">" or ">=".
            sides: As `sides` gave them for it.
        """
        return _as_mask(_ORDERS[operator](*sides)) & ~self.missing

    def equals_any(self, sides: Sequence[Sides]) -> Mask:
        """Tell which candidates equal one of many values, in one pass over the column.

        Args:
            sides: As `sides` gave them for "=" and each value; at least one.
        """
        if len(sides) == 1:
            return self.compare("=", sides[0])
        groups: dict[int, tuple[pa.Array, list[Any]]] = {}  # by what stands left, of one or two
        for left, right in sides:
            groups.setdefault(id(left), (left, []))[1].append(right)
        mask = np.zeros(len(self.values), np.bool_)
        for left, rights in groups.values():
            wanted = pa.array(rights, left.type)
            if pa.types.is_floating(left.type) and pc.any(pc.equal(wanted, 0.0)).as_py():
                wanted = pa.concat_arrays([wanted, pa.array([0.0, -0.0], left.type)])  # are equal
            mask |= _as_mask(pc.is_in(left, wanted))
        return mask & ~self.missing

    def sides(self, operator: str, value: Word) -> Sides:
        """Give what is compared: the column, or numbers that stand for it, and the value.

        Args:
            operator: "=", "<", "<=", ">" or ">=".
            value: As written.

        Raises:
            NotComparableError: The value is of another type, or the column holds lists.
        """
        kind = self.values.type
        if is_list(kind):
            raise NotComparableError(
                f"{self.name!r} holds lists, which are asked by contains", whatever_the_value=True
            )
        if is_text(kind):
            return self._of_text(operator, value)
        if pa.types.is_boolean(kind):
            return self.values, _truth(self.name, value)
        if pa.types.is_temporal(kind):
            return self.values, _time(self.name, value, kind)
        return self._of_numbers(value)

    def contains(self, value: Word) -> Mask:
        """Tell which lists hold a value, or which texts hold it as a part.

        Raises:
            NotComparableError: The column holds neither lists nor texts.
        """
        kind = self.values.type
        if not is_list(kind) and not is_text(kind):
            raise NotComparableError(
                f"contains asks lists and texts, and {self.name!r} holds {_words_for(kind)}",
                whatever_the_value=True,
            )
        if is_text(kind) and self.separator is None:
            return _as_mask(pc.match_substring(self.values, value.text))
        owners, values = as_lists(self.name, self.values, self.separator)
        equal = _as_mask(pc.equal(as_text(self.name, values), value.text))
        mask = np.zeros(len(self.values), np.bool_)
        mask[owners[equal]] = True
        return mask

    def _of_text(self, operator: str, value: Word) -> Sides:
        """Give what is compared: numbers, where the value and the whole column are; else texts."""
        if value.is_number and not self.is_id:
            numbers = self._as_numbers
            if numbers is not None:
                return numbers, float(value.text)
            if operator != "=":
                raise NotComparableError(
                    f"{self.name!r} holds texts that are no numbers: {value.shown()} must stand in "
                    "quotes, and is then compared as text"
                )
        return self.values, value.text

    @cached_property
    def _as_numbers(self) -> pa.Array | None:
        """Give the texts as numbers, null where empty; None where one is no number."""
        text = pc.utf8_trim_whitespace(self.values)
        try:
            return pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
        except pa.ArrowInvalid:
            return None

    def _of_numbers(self, value: Word) -> Sides:
        kind = self.values.type
        is_float = pa.types.is_floating(kind)
        if not (pa.types.is_integer(kind) or is_float or pa.types.is_decimal(kind)):
            raise NotComparableError(
                f"{self.name!r} holds {kind}, which has no comparison", whatever_the_value=True
            )
        if not value.is_number:
            raise NotComparableError(f"{self.name!r} holds numbers, and {value.shown()} is none")
        if pa.types.is_integer(kind):
            try:
                return self.values, pa.scalar(int(value.text), kind)
            except (ValueError, OverflowError, pa.ArrowInvalid):
                pass  # a fraction, or beyond the type
        elif is_float and not pa.types.is_float16(kind):
            return self.values, pa.scalar(float(value.text), kind)  # 9.99 is the column's own 9.99
        return self._as_floats, pa.scalar(float(value.text))

    @cached_property
    def _as_floats(self) -> pa.Array:
        return self.values.cast(pa.float64(), safe=False)


def item_columns(bundle: Bundle) -> dict[str, ItemColumn]:
    """Give the columns of the candidates that a bundle keeps: the ids, then those of the table."""
    separators = {spec.name: spec.separator for spec in bundle.items.features.schema}
    ids = bundle.items.vocabulary.ids.slice(0, bundle.num_items)
    columns = {"item_id": ItemColumn("item_id", ids, is_id=True)}
    table = bundle.items.display
    if table is None:
        return columns
    for name in table.column_names:
        if name not in columns:
            values = whole_column(table[name].slice(0, bundle.num_items))
            if pa.types.is_null(values.type):
                values = values.cast(pa.large_string())
            columns[name] = ItemColumn(name, values, separators.get(name))
    return columns


def _truth(name: str, value: Word) -> bool:
    if value.text.lower() not in ("true", "false"):
        raise NotComparableError(f"{name!r} holds true and false, and {value.shown()} is neither")
    return value.text.lower() == "true"


def _time(name: str, value: Word, kind: pa.DataType) -> pa.Scalar:
    kinds = [kind]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        kinds.append(pa.timestamp(kind.unit))  # a text without a zone is in UTC
    for readable in kinds:
        try:
            return pa.scalar(value.text).cast(readable).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    raise NotComparableError(f"{name!r} holds {kind}, and {value.shown()} cannot be read as one")


def _words_for(kind: pa.DataType) -> str:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return "numbers" if is_number else str(kind)


def _as_mask(values: pa.Array | pa.ChunkedArray) -> Mask:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)
