"""Writing a bundle: every file, then the manifest, then one rename."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.bundle.bundle import Bundle
from recsys.bundle.histories import known_histories, write_histories
from recsys.bundle.manifest import FILES, index_form, write_manifest
from recsys.bundle.model_files import write_model
from recsys.bundle.replaceable import check_replaceable
from recsys.data import Entities, PreparedDataset, write_entities
from recsys.foundations import ArgumentError, atomic_folder, check_shape, write_json
from recsys.index import (
    Changes,
    MainIndex,
    withdrawal_alone,
    write_changes,
    write_main,
    write_vectors,
)
from recsys.models import TwoTower


def write_bundle(
    path: Path,
    *,
    model: TwoTower,
    dataset: PreparedDataset,
    item_vectors: NDArray[np.float32],
    index: MainIndex,
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
        ConfigError: What lies there is no bundle.
    """
    check_replaceable(path)
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
        write_main(folder, index)
        write_manifest(
            folder,
            dataset_fingerprint=dataset.fingerprint,
            config=config,
            scores=scores,
            provenance=provenance,
        )
    return path


@dataclass(frozen=True, kw_only=True)
class NewParts:
    """What a new version of a bundle does not share with the one that it was made from.

    Attributes:
        index: Another main index, over all vectors of the other bundle; None: that of it.
        vectors: The file of these vectors, where it was written already; it is shared.
        changes: Since the main index was built; None: none.
        items: Other items; None: those of the other bundle.
    """

    index: MainIndex | None = None
    vectors: Path | None = None
    changes: Changes | None = None
    items: Entities | None = None


def replace_index(
    bundle: Bundle,
    path: Path,
    index: MainIndex,
    *,
    scores: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> Path:
    """Write a new bundle that differs from another in its index; the rest is shared on disk.

    Changes of the items become part of the index; what is withdrawn stays so.

    Args:
        bundle: The other one; it stays as it is.
        path: The new folder.
        index: Over the item vectors of the bundle.
        scores: Metrics of the new bundle.
        provenance: As for `write_bundle`.

    Returns:
        The new folder.

    Raises:
        ArgumentError: The folder is the old bundle's, or the index holds other vectors.
    """
    if (index.num_candidates, index.dim) != bundle.item_vectors.shape:
        raise ArgumentError(
            f"`index` must hold {bundle.num_items} vectors, got {index.num_candidates}."
        )
    parts = NewParts(index=index, changes=only_withdrawn(bundle))
    about = {name: bundle.manifest[name] for name in ("changes", "origin") if bundle.changes}
    return write_version(bundle, path, parts, scores=scores, provenance=provenance, about=about)


def only_withdrawn(bundle: Bundle) -> Changes | None:
    """Give what is left of a bundle's changes when a main index has taken them in."""
    left = withdrawal_alone(bundle.index_changes)
    return left if len(left.withdrawn) else None


def inherited_provenance(bundle: Bundle) -> dict[str, Any]:
    """Give what a version made from a bundle says of its origin; when and where it is made is new.

    `origin_path` is where the bundle lay whose items were not updated yet.
    """
    own = ("created", "python", "versions")
    kept = {n: v for n, v in bundle.manifest["provenance"].items() if n not in own}
    return kept if bundle.changes else kept | {"origin_path": str(bundle.path.resolve())}


def write_version(
    bundle: Bundle,
    path: Path,
    parts: NewParts,
    *,
    scores: Mapping[str, Any],
    provenance: Mapping[str, Any],
    about: Mapping[str, Any],
) -> Path:
    """Write a new version of a bundle; what is the same is shared on disk.

    Args:
        bundle: The one that it is made from; it stays as it is, and its id becomes `parent`.
        path: The new folder.
        parts: What is new.
        scores: Metrics of the new bundle.
        provenance: As for `write_bundle`.
        about: Further keys of the manifest, as for `write_manifest`.

    Returns:
        The new folder.

    Raises:
        ArgumentError: The folder is the old bundle's.
        ConfigError: What lies there is no bundle.
    """
    check_replaceable(path)
    if path.resolve() == bundle.path.resolve():
        raise ArgumentError(f"`path` must be a new folder: {path} is the bundle itself.")
    form = index_form(bundle.manifest["files"])
    written = set() if parts.index is None else {"index.json", *form}
    new_vectors = parts.index is not None and len(bundle.index_changes.rows) > 0
    written |= {"item_vectors.npy"} if new_vectors else set()
    written |= set() if parts.items is None else {"items.parquet"}
    config = dict(bundle.config)
    with atomic_folder(path) as folder:
        for name in sorted(FILES.union(form) - written):
            _link(bundle.path / name, folder / name)
        if parts.items is not None:
            write_entities(folder / "items.parquet", parts.items)
        if parts.index is not None:
            config["index"] = parts.index.settings.to_json()
            write_main(folder, parts.index)
            if new_vectors and parts.vectors is not None:
                _link(parts.vectors, folder / "item_vectors.npy")
            elif new_vectors:
                write_vectors(folder / "item_vectors.npy", parts.index.vectors)
        if parts.changes is not None:
            write_changes(folder, parts.changes)
        write_manifest(
            folder,
            dataset_fingerprint=bundle.dataset_fingerprint,
            config=config,
            scores=scores,
            provenance=provenance,
            about={"parent": bundle.bundle_id, **about},
        )
    return path


def _link(source: Path, target: Path) -> None:
    """Share a file that never changes; copy it where the disk cannot."""
    target.parent.mkdir(exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        try:
            shutil.copyfile(source, target)
        except OSError as error:  # the copy's own names the source, also where the target is full
            raise OSError(error.errno, f"{error.strerror}: {source} to {target}") from error
