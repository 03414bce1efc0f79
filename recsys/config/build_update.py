"""The bridge from settings to an update of a bundle's items."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from recsys.bundle import Bundle
from recsys.config.build_dataset import build_format
from recsys.config.schema_updates import RecallConfig, UpdateConfig
from recsys.data import marked_encoding, read_entities
from recsys.foundations import ConfigError, DataError, MissingFileError
from recsys.serving import Ids, as_ids
from recsys.updates import RecallSettings

_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".gz", ".zst", ".bz2")


def build_recall_settings(config: RecallConfig, seed: int) -> RecallSettings:
    """Turn the settings into those of the measure."""
    return RecallSettings(k=config.k, num_queries=config.num_queries, seed=seed, drift=config.drift)


def read_items(config: UpdateConfig, bundle: Bundle) -> pa.Table | None:
    """Read the items to add or replace; None where there are none.

    Raises:
        DataError: An id stands twice, or the file cannot be read.
    """
    if config.items is None:
        return None
    return _read(config, bundle, config.items, on_repeats="error")


def read_removed(config: UpdateConfig, bundle: Bundle) -> Ids:
    """Read the ids to withdraw: those listed, those of a text file, or those of a table.

    Raises:
        MissingFileError: There is no such file.
        DataError: It cannot be read.
    """
    remove = config.remove
    if remove is None:
        return ()
    if isinstance(remove, list):
        return as_ids([str(one) for one in remove])
    path = Path(str(remove))
    if not path.is_file() and "://" not in str(remove) and not path.is_dir():
        raise MissingFileError(
            f"remove must be a list of ids, remove=[{path.name}], or a file; {path} does not exist."
        )
    if path.suffix.lower() in _TABLES or not path.is_file():
        return _read(config, bundle, str(remove), on_repeats="first")["id"]
    return as_ids([line.strip() for line in _read_lines(path, config.file.encoding)])


def _read_lines(path: Path, encoding: str) -> list[str]:
    """Read the lines that are not blank; a byte order mark wins over the encoding."""
    try:
        content = path.read_bytes()
        text = content.decode(marked_encoding(content) or encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise ConfigError(f"file.encoding must be a text encoding, got {encoding!r}.") from error
    except (UnicodeError, OSError) as error:
        raise DataError(f"{path} must be a text of an id a line: {error}.") from error
    return [line for line in text.splitlines() if line.strip()]


def _read(config: UpdateConfig, bundle: Bundle, path: Any, *, on_repeats: str) -> pa.Table:
    return read_entities(
        path,
        format=build_format(config.file),
        id_column=_id_column(config, bundle),
        what="item",
        on_bad_rows=config.on_bad_rows,
        on_repeats=on_repeats,
        setting="id_column",
    ).table


def _id_column(config: UpdateConfig, bundle: Bundle) -> str:
    """Give the column of ids: as set, else as the tables of training had it."""
    if config.id_column is not None:
        return config.id_column
    columns = bundle.config.get("dataset", {}).get("columns") or {}
    return str(columns.get("item_table_id") or columns.get("item") or "item_id")
