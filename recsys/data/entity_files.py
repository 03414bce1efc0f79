"""Users or items as Parquet: id, training count, encoded features, display columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recsys.data.dataset import Entities
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.vocabulary import Vocabulary
from recsys.foundations import FormatError, RecsysError

_FEATURE, _DISPLAY = "feature_", "display_"


def write_entities(path: Path, entities: Entities) -> None:
    """Write one row an entity, in the order of the rows."""
    columns = {"id": entities.vocabulary.ids, "count": pa.array(entities.counts, pa.int64())}
    columns |= entities.features.to_arrow(_FEATURE)
    if entities.display is not None:
        for name in entities.display.column_names:
            columns[_DISPLAY + name] = entities.display[name]
    pq.write_table(pa.table(columns), path)


def read_entities_file(path: Path, schema: FeatureSchema) -> Entities:
    """Read what `write_entities` wrote.

    Args:
        path: The file.
        schema: Of the features.

    Raises:
        FormatError: It is damaged or lacks a column.
    """
    try:
        table = pq.read_table(path)
        names = [name for name in table.column_names if name.startswith(_DISPLAY)]
        display = table.select(names).rename_columns([n.removeprefix(_DISPLAY) for n in names])
        return Entities(
            Vocabulary.from_ids(table["id"]),
            np.asarray(table["count"].to_numpy(), np.int64),
            FeatureTable.from_arrow(schema, table, _FEATURE),
            display if names else None,
        )
    except (pa.ArrowException, KeyError, TypeError, OSError, RecsysError) as error:
        raise FormatError(f"{path} is damaged: {error}") from error
