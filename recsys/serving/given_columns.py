"""Features or context of users that a caller gives."""

from recsys.data import FeatureSchema, Vocabulary
from recsys.foundations import DataError
from recsys.serving.frames import Frame, as_arrow
from recsys.serving.ids import as_ids


class GivenColumns:
    """Columns by user, encoded once for all blocks of users that are asked about.

    Args:
        what: What they are, for messages.
        given: `user_id`, and some of the columns of the schema.
        schema: Of the model.

    Attributes:
        users: The users that have a row.
        table: Their rows, in that order; columns that are not given are missing.

    Raises:
        DataError: The table has no `user_id`, a user twice, or a column unknown to the model.
    """

    def __init__(self, what: str, given: Frame, schema: FeatureSchema) -> None:
        given = as_arrow(given)
        if "user_id" not in given.column_names:
            raise DataError(f"The table of {what} lacks a column 'user_id'.")
        known = schema.names
        unknown = [name for name in given.column_names if name not in ("user_id", *known)]
        if unknown:
            there = ", ".join(known) if known else "none"
            raise DataError(
                f"The table of {what} has the column {unknown[0]!r}; the model knows {there}."
            )
        self.users = Vocabulary.from_ids(as_ids(given["user_id"]))
        self.table = schema.encode(given)
