"""The prepared data set as files: written once, read and checked by everything else."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from recsys.data.coded_log import PARTS
from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.entity_files import read_entities_file, write_entities
from recsys.data.event_files import column_folder, map_events, write_events
from recsys.data.events import Events
from recsys.data.features import FeatureSchema
from recsys.foundations import (
    ConfigError,
    DataError,
    FormatError,
    MissingFileError,
    atomic_folder,
    canonical_json,
    check_files,
    list_files,
    read_json,
    sha256_text,
    write_json,
)

FORMAT = "recsys-dataset"
FORMAT_VERSION = 2
_MOST_ROWS = 2**31  # of users and of items: their rows are int32
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
            "validation_input" and "test_input". Their columns are read in blocks, so that they may
            be memory maps.
        manifest: What else is known; files, format and fingerprint are added here.

    Returns:
        The folder.

    Raises:
        DataError: There are more users or items than int32 can count.
    """
    for name, entities in (("users", users), ("items", items)):
        _check_count(name, len(entities))
    schemas = {"users": users.features.schema, "items": items.features.schema}
    schemas["context"] = parts["train"].context.schema
    with atomic_folder(output) as folder:
        write_entities(folder / "users.parquet", users)
        write_entities(folder / "items.parquet", items)
        for name, events in parts.items():
            write_events(folder / name, events, len(users))
        write_json(
            folder / "features.json", {name: schema.to_json() for name, schema in schemas.items()}
        )
        whole = {**manifest, "format": FORMAT, "format_version": FORMAT_VERSION}
        whole["parts"] = list(parts)
        whole["features"] = {name: _describe_schema(schema) for name, schema in schemas.items()}
        whole["files"] = list_files(folder)
        write_json(folder / "manifest.json", whole | {"fingerprint": _fingerprint(whole)})
    return output


def check_replaceable(output: Path) -> None:
    """Check that a data set may be written there: nothing but a data set is replaced by one.

    Raises:
        ConfigError: There is a file, or a folder that holds something else.
    """
    if output.is_dir():
        if any(output.iterdir()) and not _is_prepared(output):
            raise ConfigError(
                f"{output} holds other files than a prepared data set, which would replace them; "
                "give a folder that is empty or not there."
            )
    elif output.exists():
        raise ConfigError(f"{output} is a file; a folder is to be written there.")


def _is_prepared(folder: Path) -> bool:
    try:
        manifest = read_json(folder / "manifest.json")
    except (MissingFileError, FormatError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


def _check_count(name: str, count: int) -> None:
    if count > _MOST_ROWS:
        raise DataError(f"A data set can have {_MOST_ROWS:,} {name} at most, got {count:,}.")


def read_prepared(path: Path | str, *, verify: bool = True) -> PreparedDataset:
    """Read a prepared data set; its events are mapped, not read.

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
    except FormatError:
        raise
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
    counts = manifest["counts"]
    parts = {
        name: map_events(
            folder / name,
            schemas["context"],
            files=_names_in(manifest["files"], column_folder(Path(name))),
            num_events=counts[name],
            num_users=counts["known_users"],
        )
        for name in PARTS
        if name in manifest["parts"]
    }
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


def _names_in(files: Iterable[str], folder: Path) -> set[str]:
    return {Path(file).name for file in files if Path(file).parent == folder}


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
