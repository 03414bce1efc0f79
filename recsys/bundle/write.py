"""Writing a bundle: every file, then the manifest, then one rename."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.bundle.bundle import Bundle
from recsys.bundle.histories import known_histories, write_histories
from recsys.bundle.manifest import FILES, write_manifest
from recsys.bundle.model_files import write_model
from recsys.data import PreparedDataset, write_entities
from recsys.foundations import ArgumentError, atomic_folder, check_shape, write_json
from recsys.index import StoredIndex, write_stored, write_vectors
from recsys.models import TwoTower


def write_bundle(
    path: Path,
    *,
    model: TwoTower,
    dataset: PreparedDataset,
    item_vectors: NDArray[np.float32],
    index: StoredIndex,
    config: Mapping[str, Any],
    scores: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> Path:
    """Write a bundle; the folder appears, or replaces an old one, in one step.

    Args:
        path: The folder.
        model: Trained on the data set.
        dataset: Gives ids, counts, features and histories; the bundle does not need it afterwards.
        item_vectors: [num_items, E], float32; row i is that of candidate i.
        index: Over these vectors.
        config: The resolved settings of the run, as plain values.
        scores: Metrics on validation and test, as plain values.
        provenance: What is no part of the identity: paths, the tracking run, the code's version.
            Time and library versions are added.

    Returns:
        The folder.

    Raises:
        ShapeError: The vectors are not [num_items, E].
        ArgumentError: The index holds another number of vectors.
    """
    check_shape("item_vectors", item_vectors, dataset.num_items, model.output_dim)
    if (index.num_candidates, index.dim) != item_vectors.shape:
        raise ArgumentError(
            f"`index` must hold {len(item_vectors)} vectors, got {index.num_candidates}."
        )
    schemas = {
        "users": dataset.users.features.schema,
        "items": dataset.items.features.schema,
        "context": dataset.context_schema,
    }
    facts = {
        "num_users": dataset.num_users,
        "num_items": dataset.num_items,
        "exclude_seen": dataset.exclude_seen,
        "clock": dataset.clock,
    }
    with atomic_folder(path) as folder:
        write_model(folder, model, facts)
        write_json(folder / "features.json", {n: each.to_json() for n, each in schemas.items()})
        write_entities(folder / "users.parquet", dataset.users)
        write_entities(folder / "items.parquet", dataset.items)
        write_histories(folder, *known_histories(dataset))
        write_vectors(folder / "item_vectors.npy", item_vectors)
        write_stored(folder, index)
        write_manifest(
            folder,
            dataset_fingerprint=dataset.fingerprint,
            config=config,
            scores=scores,
            provenance=provenance,
        )
    return path


def replace_index(
    bundle: Bundle,
    path: Path,
    index: StoredIndex,
    *,
    scores: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> Path:
    """Write a new bundle that differs from another in its index; the rest is shared on disk.

    Args:
        bundle: The other one; it stays as it is.
        path: The new folder.
        index: Over the same item vectors.
        scores: Metrics of the new bundle.
        provenance: As for `write_bundle`; the id of the other bundle is added.

    Returns:
        The new folder.

    Raises:
        ArgumentError: The folder is the old bundle's, or the index holds other vectors.
    """
    if path.resolve() == bundle.path.resolve():
        raise ArgumentError(f"`path` must be a new folder: {path} is the bundle itself.")
    if (index.num_candidates, index.dim) != bundle.item_vectors.shape:
        raise ArgumentError(
            f"`index` must hold {bundle.num_items} vectors, got {index.num_candidates}."
        )
    with atomic_folder(path) as folder:
        for name in sorted(FILES - {"index.json"}):
            _link(bundle.path / name, folder / name)
        write_stored(folder, index)
        write_manifest(
            folder,
            dataset_fingerprint=bundle.dataset_fingerprint,
            config={**bundle.config, "index": index.settings.to_json()},
            scores=scores,
            provenance={**provenance, "other_index_of": bundle.bundle_id},
        )
    return path


def _link(source: Path, target: Path) -> None:
    """Share a file that never changes; copy it where the disk cannot."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
