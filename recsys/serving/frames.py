"""Tables that a caller gives: Arrow's or pandas'."""

from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from recsys.foundations import DataError

Frame: TypeAlias = pd.DataFrame | pa.Table


def as_arrow(table: Frame) -> pa.Table:
    """Give a table in Arrow's form; a frame's row labels are no column.

    Raises:
        DataError: A column of the frame mixes types.
    """
    if not isinstance(table, pd.DataFrame):
        return table
    try:
        return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"A column of the table mixes types: {error}") from error
