"""Which columns a log of one or several parts has."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from recsys.data.coded_log import RESERVED
from recsys.data.raw import LogSource
from recsys.foundations import DataError


@dataclass(frozen=True)
class LogLayout:
    """What a log has beside ids.

    Attributes:
        has_times: Whether there is a column of times.
        has_weights: Whether there are weights; a part of the log without them has 1.
        has_parts: Whether the parts were given.
        context: Names and types of the context columns.
    """

    has_times: bool
    has_weights: bool
    has_parts: bool
    context: pa.Schema

    @classmethod
    def of(cls, logs: Mapping[str, LogSource], *, has_parts: bool) -> "LogLayout":
        """Find out what logs that are put one behind the other have in common.

        Weights are of use in training only: another part that has none gets 1, and weights that
        the training part lacks are left out.

        Args:
            logs: Part -> its log.
            has_parts: Whether the parts were given.

        Raises:
            DataError: The logs differ in their clock or their columns.
        """
        first = next(iter(logs.values()))
        for name, log in logs.items():
            if log.clock != first.clock:
                raise DataError(
                    f"The {name} part has the clock {log.clock!r}, the train part {first.clock!r}."
                )
            if set(log.schema.names) - {"weight"} != set(first.schema.names) - {"weight"}:
                raise DataError(
                    f"The {name} part has the columns {', '.join(log.schema.names)}; "
                    f"the train part has {', '.join(first.schema.names)}."
                )
        names = first.schema.names
        context = [name for name in names if name not in RESERVED]
        return cls(
            "timestamp" in names,
            "weight" in names,
            has_parts,
            _joined([log.schema for log in logs.values()], context),
        )

    def columns(self, *, with_rows: bool) -> tuple[str, ...]:
        """List the columns of the coded log, of `coded_log.DTYPES`."""
        present = {
            "item": True,
            "timestamp": self.has_times,
            "weight": self.has_weights,
            "row": with_rows,
            "part": self.has_parts,
        }
        return tuple(name for name, there in present.items() if there)


def _joined(schemas: list[pa.Schema], names: list[str]) -> pa.Schema:
    """Give types that hold the columns of all; dictionaries are decoded."""
    empty = []
    for schema in schemas:
        kinds = {name: schema.field(name).type for name in names}
        plain = {
            name: kind.value_type if pa.types.is_dictionary(kind) else kind
            for name, kind in kinds.items()
        }
        empty.append(pa.schema(list(plain.items())).empty_table())
    try:
        return pa.concat_tables(empty, promote_options="permissive").schema
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"The parts' columns differ in type: {error}.") from error
