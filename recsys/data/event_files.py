"""The events of one part as files: as Parquet, and as columns to be mapped.

The columns stand in a folder of their own, so that a part's folder can be read as Parquet.

Dimensions: N events, U users.
"""

from collections.abc import Container
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recsys.data.events import Events
from recsys.data.features import FeatureSchema
from recsys.data.mapped_arrays import map_array, release_pages, row_blocks, write_array
from recsys.data.mapped_features import map_features, write_features
from recsys.foundations import FormatError

_ROWS_A_FILE = 4_000_000
_CONTEXT = "context"
# Measured on logs: as fast to write as no encoding at all, and smaller than Snappy with
# dictionaries, which takes twice the time.
_ENCODINGS = dict.fromkeys(("user", "item", "timestamp"), "DELTA_BINARY_PACKED")


def write_events(folder: Path, events: Events, num_users: int) -> None:
    """Write the events of a part; its folder and that of its columns are made.

    Args:
        folder: Of the part, for the Parquet files; the columns go to `column_folder` of it.
        events: Their columns may be memory maps: they are read in blocks.
        num_users: U, users of the data set.
    """
    folder.mkdir()
    columns = column_folder(folder)
    columns.mkdir(parents=True)
    write_array(columns / "user.npy", events.users, np.int32)
    write_array(columns / "item.npy", events.items, np.int32)
    write_array(columns / "offsets.npy", events.offsets_of(num_users), np.int64)
    if events.timestamps is not None:
        write_array(columns / "timestamp.npy", events.timestamps, np.int64)
    if events.weights is not None:
        write_array(columns / "weight.npy", events.weights, np.float32)
    write_features(columns, _CONTEXT, events.context)
    for number, file in enumerate(row_blocks(max(len(events), 1), _ROWS_A_FILE)):
        _write_parquet(folder / f"part-{number:05d}.parquet", events, file)


def map_events(
    folder: Path, schema: FeatureSchema, *, files: Container[str], num_events: int, num_users: int
) -> Events:
    """Map what `write_events` wrote; the Parquet files are not read.

    Args:
        folder: Of the part.
        schema: Of the context.
        files: Names of the column files that there must be.
        num_events: N.
        num_users: U.

    Raises:
        FormatError: A file is damaged, or they do not belong together.
    """
    columns = column_folder(folder)

    def find(name: str) -> Path | None:
        return columns / name if name in files else None

    times, weights = find("timestamp.npy"), find("weight.npy")
    offsets = map_array(columns / "offsets.npy", np.int64, num_users + 1)
    if offsets[0] != 0 or offsets[-1] != num_events:
        raise FormatError(f"{columns / 'offsets.npy'} does not divide {num_events} events.")
    return Events(
        map_array(columns / "user.npy", np.int32, num_events),
        map_array(columns / "item.npy", np.int32, num_events),
        None if times is None else map_array(times, np.int64, num_events),
        None if weights is None else map_array(weights, np.float32, num_events),
        map_features(columns, _CONTEXT, schema, num_events),
        offsets,
    )


def column_folder(folder: Path) -> Path:
    """Give the folder of a part's columns."""
    return folder.parent / "columns" / folder.name


def _write_parquet(path: Path, events: Events, rows: slice) -> None:
    schema = _table(events.slice(0, 0)).schema
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    writer = pq.ParquetWriter(
        path,
        schema,
        compression="none",
        column_encoding=_ENCODINGS,
        use_dictionary=[name for name in schema.names if name not in (*_ENCODINGS, *nested)],
    )
    with writer:
        for block in row_blocks(rows.stop - rows.start):
            writer.write_table(
                _table(events.slice(rows.start + block.start, rows.start + block.stop))
            )
            for column in (events.users, events.items, events.timestamps, events.weights):
                if column is not None:
                    release_pages(column)


def _table(events: Events) -> pa.Table:
    nothing = pa.nulls(len(events), pa.int64())
    columns = {
        "user": pa.array(events.users, pa.int32()),
        "item": pa.array(events.items, pa.int32()),
        "timestamp": nothing if events.timestamps is None else pa.array(events.timestamps),
        "weight": nothing.cast(pa.float32())
        if events.weights is None
        else pa.array(events.weights),
    }
    return pa.table(columns | events.context.to_arrow("context_"))
