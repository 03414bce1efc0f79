"""The prepared data set as files: written once, read and checked by everything else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recsys.data.coded_log import PARTS
from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.entity_files import read_entities_file, write_entities
from recsys.data.events import Events
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.foundations import (
    FormatError,
    atomic_folder,
    canonical_json,
    check_files,
    list_files,
    read_json,
    sha256_text,
    write_json,
)

FORMAT = "recsys-dataset"
FORMAT_VERSION = 1
_ROWS_A_FILE = 4_000_000
_OUTSIDE_THE_FINGERPRINT = ("fingerprint", "summary", "warnings", "sources")


def write_prepared(
    output: Path,
    *,
    users: Entities,
    items: Entities,
    parts: Mapping[str, Events],
    manifest: Mapping[str, Any],
) -> Path:
    """Write a data set, replacing the folder in one step.

    Args:
        output: The folder.
        users: All users.
        items: All items.
        parts: Part -> its events; "train", "validation", "test" and, where users are held out,
            "validation_input" and "test_input".
        manifest: What else is known; files, format and fingerprint are added here.

    Returns:
        The folder.
    """
    schemas = {"users": users.features.schema, "items": items.features.schema}
    schemas["context"] = parts["train"].context.schema
    with atomic_folder(output) as folder:
        write_entities(folder / "users.parquet", users)
        write_entities(folder / "items.parquet", items)
        for name, events in parts.items():
            (folder / name).mkdir()
            table = _event_table(events)
            for number, start in enumerate(range(0, max(table.num_rows, 1), _ROWS_A_FILE)):
                rows = table.slice(start, _ROWS_A_FILE)
                pq.write_table(rows, folder / name / f"part-{number:05d}.parquet")
        write_json(
            folder / "features.json", {name: schema.to_json() for name, schema in schemas.items()}
        )
        whole = {**manifest, "format": FORMAT, "format_version": FORMAT_VERSION}
        whole["parts"] = list(parts)
        whole["features"] = {name: _describe_schema(schema) for name, schema in schemas.items()}
        whole["files"] = list_files(folder)
        write_json(folder / "manifest.json", whole | {"fingerprint": _fingerprint(whole)})
    return output


def read_prepared(path: Path | str, *, verify: bool = True) -> PreparedDataset:
    """Read a prepared data set.

    Args:
        path: Its folder.
        verify: Whether every file's hash is compared; sizes always are.

    Raises:
        MissingFileError: There is no data set.
        FormatError: A file is missing or damaged, or the format is unknown.
    """
    folder = Path(path)
    manifest = read_json(folder / "manifest.json")
    _check_manifest(folder, manifest)
    check_files(folder, manifest["files"], full=verify)
    try:
        return _read(folder, manifest)
    except (pa.ArrowException, KeyError, ValueError, TypeError, OSError) as error:
        raise FormatError(f"{folder} is damaged: {error}") from error


def _check_manifest(folder: Path, manifest: Any) -> None:
    where = folder / "manifest.json"
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FormatError(f"{where} is not the manifest of a prepared data set.")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{where} has the format version {version!r}; this release reads {FORMAT_VERSION}. "
            "Prepare the data set again."
        )
    if manifest.get("fingerprint") != _fingerprint(manifest):
        raise FormatError(f"{where} is damaged: its fingerprint is not that of its content.")


def _read(folder: Path, manifest: dict[str, Any]) -> PreparedDataset:
    schemas = {
        name: FeatureSchema.from_json(plain)
        for name, plain in read_json(folder / "features.json").items()
    }
    parts = {
        name: _read_events(folder / name, schemas["context"])
        for name in PARTS
        if name in manifest["parts"]
    }
    counts = manifest["counts"]
    return PreparedDataset(
        path=folder,
        manifest=manifest,
        users=read_entities_file(folder / "users.parquet", schemas["users"]),
        items=read_entities_file(folder / "items.parquet", schemas["items"]),
        num_users=counts["users"],
        num_items=counts["items"],
        clock=manifest["clock"],
        train=parts["train"],
        validation=parts["validation"],
        test=parts["test"],
        validation_input=parts.get("validation_input"),
        test_input=parts.get("test_input"),
        fingerprint=manifest["fingerprint"],
        exclude_seen=manifest["exclude_seen"],
    )


def _fingerprint(manifest: Mapping[str, Any]) -> str:
    """Hash what the data set is: not where its sources lay, nor the words about it."""
    content = {key: manifest[key] for key in manifest if key not in _OUTSIDE_THE_FINGERPRINT}
    sources = [
        {key: source[key] for key in source if key != "path"}
        for source in manifest.get("sources", [])
    ]
    return sha256_text(canonical_json(content | {"sources": sources}))


def _describe_schema(schema: FeatureSchema) -> list[dict[str, Any]]:
    return [{"name": spec.name, "kind": spec.kind, "size": spec.size} for spec in schema]


def _event_table(events: Events) -> pa.Table:
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


def _read_events(folder: Path, schema: FeatureSchema) -> Events:
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
    times, weights = table["timestamp"], table["weight"]
    return Events(
        table["user"].to_numpy().astype(np.int64),
        table["item"].to_numpy().astype(np.int64),
        None if times.null_count else times.to_numpy(),
        None if weights.null_count else weights.to_numpy(),
        FeatureTable.from_arrow(schema, table, "context_"),
    )
