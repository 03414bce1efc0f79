"""Reading a bundle: hashes first, then every part, then whether the parts belong together."""

from pathlib import Path
from typing import Any

import numpy as np

from recsys.bundle.bundle import Bundle
from recsys.bundle.histories import read_histories
from recsys.bundle.manifest import read_manifest
from recsys.bundle.model_files import read_facts, read_model
from recsys.data import Entities, FeatureSchema, read_entities_file
from recsys.foundations import FormatError, read_json
from recsys.index import (
    CHANGES_FILES,
    ChangedIndex,
    IndexSettings,
    MainIndex,
    read_changes,
    read_main,
    read_vectors,
)

_NOBODY = np.zeros(0, np.int64)


def read_bundle(path: Path | str, *, verify: bool = True) -> Bundle:
    """Read a bundle.

    Args:
        path: Its folder.
        verify: Whether the files' hashes are compared; their sizes always are.

    Raises:
        MissingFileError: There is no bundle.
        FormatError: A file is missing, damaged, of another bundle, or of an unknown version; the
            message names it.
    """
    folder = Path(path)
    manifest = read_manifest(folder, verify=verify)
    facts, schemas = read_facts(folder), _read_schemas(folder)
    model = read_model(folder, facts, schemas)
    users = read_entities_file(folder / "users.parquet", schemas["users"])
    items = read_entities_file(folder / "items.parquet", schemas["items"])
    model.item_features = items.features
    num_users, num_model_items = facts["num_users"], facts["num_items"]
    _check_count(folder / "users.parquet", users, num_users)
    index = _read_index(folder, manifest, num_model_items, model.output_dim)
    _check_count(folder / "items.parquet", items, index.num_candidates)
    if model.spec.histories_read_tower:  # and so know of the items that updates added
        model.num_history_items = index.num_candidates
    histories, history_times = read_histories(
        folder, num_users=len(users), num_items=num_model_items, clock=facts["clock"]
    )
    return Bundle(
        path=folder,
        manifest=manifest,
        model=model,
        users=users,
        items=items,
        num_users=num_users,
        num_items=index.num_candidates,
        num_model_items=num_model_items,
        withdrawn=index.changes.withdrawn if isinstance(index, ChangedIndex) else _NOBODY,
        context_schema=schemas["context"],
        histories=histories,
        history_times=history_times,
        item_vectors=index.vectors,
        index=index,
        exclude_seen=facts["exclude_seen"],
        clock=facts["clock"],
    )


def _read_index(
    folder: Path, manifest: dict[str, Any], num_model_items: int, dim: int
) -> MainIndex | ChangedIndex:
    """Read the index and, where the items have changed since it was built, the changes.

    Without changes of the items there are as many vectors as the model has items.
    """
    vectors = read_vectors(folder / "item_vectors.npy")
    changed = "changes" in manifest
    enough = len(vectors) >= num_model_items if changed else len(vectors) == num_model_items
    if not enough or vectors.shape[1] != dim:
        raise FormatError(
            f"{folder / 'item_vectors.npy'} holds {len(vectors)} vectors of width "
            f"{vectors.shape[1]}, the model gives {num_model_items} of width {dim}."
        )
    settings = _read_settings(folder / "index.json")
    main = read_main(folder, vectors, settings)
    listed = set(manifest["files"]) & set(CHANGES_FILES)
    if listed and not changed:
        raise FormatError(f"{folder / min(listed)} does not belong to a bundle without changes.")
    changes = read_changes(folder, len(vectors), dim) if listed else None
    return main if changes is None else ChangedIndex(main, changes)


def _read_schemas(folder: Path) -> dict[str, FeatureSchema]:
    plain = read_json(folder / "features.json")
    try:
        return {
            name: FeatureSchema.from_json(plain[name]) for name in ("users", "items", "context")
        }
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{folder / 'features.json'} is damaged: {error}") from error


def _check_count(path: Path, entities: Entities, at_least: int) -> None:
    if len(entities) < at_least:
        raise FormatError(f"{path} holds {len(entities)} ids, the model has {at_least}.")


def _read_settings(path: Path) -> IndexSettings:
    plain = read_json(path)
    try:
        return IndexSettings.from_json(plain)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
