"""The manifest of a bundle: what is in it, by hash, and its identity."""

import datetime
import importlib.metadata
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recsys.foundations import (
    FormatError,
    MissingFileError,
    canonical_json,
    check_files,
    list_files,
    read_json,
    sha256_text,
    write_json,
)
from recsys.index import INDEX_FORMS

FORMAT = "recsys-bundle"
FORMAT_VERSION = 3
METRIC = "inner_product"
MANIFEST = "manifest.json"
FILES = frozenset(  # beside those of the index
    {
        "model.json",
        "model.safetensors",
        "features.json",
        "users.parquet",
        "items.parquet",
        "history_offsets.npy",
        "history_rows.npy",
        "history_times.npy",
        "item_vectors.npy",
        "index.json",
    }
)
_LIBRARIES = ("recsys-retrieval", "torch", "faiss-cpu", "scann-core", "numpy", "pyarrow")


def write_manifest(
    folder: Path,
    *,
    dataset_fingerprint: str,
    config: Mapping[str, Any],
    scores: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> None:
    """Write the manifest of a folder whose files are all there.

    The identity is the hash of the files' hashes, the metric and the format: two bundles with the
    same content have the same one, wherever and whenever they were written.
    """
    files = list_files(folder)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "metric": METRIC,
        "bundle_id": _identity(files),
        "dataset_fingerprint": dataset_fingerprint,
        "config": dict(config),
        "scores": dict(scores),
        "files": files,
        "provenance": _circumstances() | dict(provenance),
    }
    write_json(folder / MANIFEST, manifest | {"manifest_sha256": _own_hash(manifest)})


def read_manifest(folder: Path, *, verify: bool) -> dict[str, Any]:
    """Read and check the manifest and the files it lists.

    Args:
        folder: The bundle.
        verify: Whether the files' hashes are compared; their sizes always are.

    Raises:
        MissingFileError: There is no manifest.
        FormatError: The manifest or a file is damaged, missing, or of another bundle or version.
    """
    where = folder / MANIFEST
    if not where.exists() and (folder / "bundle" / MANIFEST).exists():
        raise MissingFileError(f"{folder} is the folder of a run; its bundle is {folder}/bundle.")
    manifest = read_json(where)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FormatError(f"{where} is not the manifest of a bundle.")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{where} has the format version {version!r}; this release reads {FORMAT_VERSION}: "
            "train the model again, or use the release that wrote the bundle."
        )
    if manifest.get("manifest_sha256") != _own_hash(manifest):
        raise FormatError(f"{where} is damaged: its SHA-256 is not that of its content.")
    if manifest.get("metric") != METRIC:
        raise FormatError(f"{where} names the metric {manifest.get('metric')!r}, not {METRIC!r}.")
    listed = set(manifest.get("files") or ())
    unlisted = sorted(FILES - listed) or _lacking_of_index(listed)
    if unlisted:
        raise FormatError(f"{where} is damaged: it does not list {unlisted[0]}.")
    if manifest.get("bundle_id") != _identity(manifest["files"]):
        raise FormatError(f"{where} is damaged: its bundle id is not that of its files.")
    check_files(folder, manifest["files"], full=verify)
    return manifest


def _lacking_of_index(listed: set[str]) -> list[str]:
    """Give what is missing of the form of index that is there in part; of FAISS's without any."""
    form = max(INDEX_FORMS, key=lambda names: len(listed.intersection(names)))
    return sorted(set(form) - listed)


def _identity(files: Mapping[str, Any]) -> str:
    hashes = {name: facts["sha256"] for name, facts in files.items()}
    return sha256_text(
        canonical_json(
            {
                "files": hashes,
                "metric": METRIC,
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
            }
        )
    )


def _own_hash(manifest: Mapping[str, Any]) -> str:
    return sha256_text(
        canonical_json({key: manifest[key] for key in manifest if key != "manifest_sha256"})
    )


def _circumstances() -> dict[str, Any]:
    """Give time and library versions, which are no part of the identity."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # run from a folder without installing
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"created": now, "python": platform.python_version(), "versions": versions}
