"""The manifest of a bundle: what is in it, by hash, and its identity."""

import datetime
import importlib.metadata
import platform
from collections.abc import Collection, Mapping
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
CHANGED_VERSION = 4  # of bundles whose items are not those that the model was trained with
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
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the manifest of a folder whose files are all there.

    The identity is the hash of the files' hashes, the metric and the format: two bundles with the
    same content have the same one, wherever and whenever they were written.

    Args:
        folder: The bundle.
        dataset_fingerprint: Of the data set that the model was trained on.
        config: The resolved settings of the training.
        scores: Metrics.
        provenance: What time and library versions are added to.
        about: Further keys: `parent`, the id of the bundle that it was made from, and those of an
            update. With `changes` the format version is that of a bundle with changed items, which
            a release that knows of none refuses.
    """
    files, about = list_files(folder), dict(about or {})
    version = CHANGED_VERSION if "changes" in about else FORMAT_VERSION
    manifest: dict[str, Any] = about | {
        "format": FORMAT,
        "format_version": version,
        "metric": METRIC,
        "bundle_id": _identity(files, version),
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
    if version not in (FORMAT_VERSION, CHANGED_VERSION):
        raise FormatError(
            f"{where} has the format version {version!r}; this release reads {FORMAT_VERSION} and "
            f"{CHANGED_VERSION}: train the model again, or use the release that wrote the bundle."
        )
    _check(where, manifest, version)
    check_files(folder, manifest["files"], full=verify)
    return manifest


def _check(where: Path, manifest: Mapping[str, Any], version: int) -> None:
    """Check that a manifest of a known version says what it should."""
    if manifest.get("manifest_sha256") != _own_hash(manifest):
        raise FormatError(f"{where} is damaged: its SHA-256 is not that of its content.")
    if manifest.get("metric") != METRIC:
        raise FormatError(f"{where} names the metric {manifest.get('metric')!r}, not {METRIC!r}.")
    listed = set(manifest.get("files") or ())
    unlisted = sorted(FILES - listed) or sorted(set(index_form(listed)) - listed)
    if unlisted:
        raise FormatError(f"{where} is damaged: it does not list {unlisted[0]}.")
    if (version == CHANGED_VERSION) != isinstance(manifest.get("changes"), dict):
        raise FormatError(f"{where} is damaged: `changes` does not go with its format version.")
    if manifest.get("bundle_id") != _identity(manifest["files"], version):
        raise FormatError(f"{where} is damaged: its bundle id is not that of its files.")


def index_form(listed: Collection[str]) -> tuple[str, ...]:
    """Give the files of the form of index that is listed at least in part; of FAISS's without any.

    `index.json` is none of them.
    """
    return max(INDEX_FORMS, key=lambda names: len(set(names).intersection(listed)))


def _identity(files: Mapping[str, Any], version: int) -> str:
    hashes = {name: facts["sha256"] for name, facts in files.items()}
    return sha256_text(
        canonical_json(
            {
                "files": hashes,
                "metric": METRIC,
                "format": FORMAT,
                "format_version": version,
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
