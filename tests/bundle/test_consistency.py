"""Bundles whose hashes are in order but whose parts are not: each is refused by file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from recsys.bundle import read_bundle
from recsys.foundations import FormatError, canonical_json, list_files, sha256_text
from recsys.index import FaissIndex, IndexSettings, write_index, write_vectors

MakeBundle = Callable[..., Path]


def sign(path: Path, **changes: Any) -> None:
    """Write the manifest that belongs to the folder's files, as its maker would."""
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").unlink()
    files = list_files(path)
    content = {
        "files": {name: facts["sha256"] for name, facts in files.items()},
        "metric": "inner_product",
        "format": "recsys-bundle",
        "format_version": 3,
    }
    manifest |= {"files": files, "bundle_id": sha256_text(canonical_json(content)), **changes}
    del manifest["manifest_sha256"]
    manifest["manifest_sha256"] = sha256_text(canonical_json(manifest))
    (path / "manifest.json").write_text(json.dumps(manifest))


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_identity_can_be_computed_from_the_files(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    before = read_bundle(path).bundle_id
    sign(path)
    assert read_bundle(path).bundle_id == before


def test_a_manifest_that_says_too_little_or_something_else_is_refused(
    make_bundle: MakeBundle,
) -> None:
    path = make_bundle()
    sign(path, metric="l2")
    with pytest.raises(FormatError, match=r"manifest\.json names the metric 'l2'"):
        read_bundle(path)
    sign(path, metric="inner_product", bundle_id="0" * 64)
    with pytest.raises(FormatError, match="its bundle id is not that of its files"):
        read_bundle(path)
    (path / "index.json").rename(path / "index.txt")
    sign(path)
    with pytest.raises(FormatError, match=r"it does not list index\.json"):
        read_bundle(path)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("history_rows.npy", np.full(7 * 40, 32, np.int32), "a row that is none of the 32 items"),
        ("history_rows.npy", np.full(7 * 40, -1, np.int32), "a row that is none of the 32 items"),
        ("history_rows.npy", np.zeros((280, 1), np.int32), "it holds no list of integers"),
        ("history_rows.npy", np.zeros(280, np.float32), "it holds no list of integers"),
        ("history_times.npy", np.zeros(279, np.int64), "holds 279 times, there must be 280"),
        ("history_times.npy", np.zeros(0, np.int64), "holds 0 times, there must be 280"),
        ("history_times.npy", np.zeros(280, np.float64), "it holds no list of integers"),
        ("history_offsets.npy", np.zeros(40, np.int64), "holds 39 histories, there are 40 users"),
        ("history_offsets.npy", np.zeros(41, np.int64), "does not divide"),
    ],
)
def test_histories_that_do_not_fit_are_refused(
    make_bundle: MakeBundle, name: str, array: np.ndarray, words: str
) -> None:
    path = make_bundle()
    np.save(path / name, array)
    sign(path)
    with pytest.raises(FormatError, match=words):
        read_bundle(path)
    (path / name).write_bytes(b"not an array")
    sign(path)
    with pytest.raises(FormatError, match=r"not a whole \.npy file"):
        read_bundle(path)


def test_ids_and_vectors_that_do_not_fit_are_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    items = pq.read_table(path / "items.parquet")
    pq.write_table(items.slice(0, 31), path / "items.parquet")
    sign(path)
    with pytest.raises(FormatError, match=r"items\.parquet holds 31 ids, the model has 32"):
        read_bundle(path)
    pq.write_table(items.drop_columns(["count"]), path / "items.parquet")
    sign(path)
    with pytest.raises(FormatError, match=r"items\.parquet is damaged"):
        read_bundle(path)


def test_vectors_of_another_width_are_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    vectors = np.zeros((32, 9), np.float32)
    write_vectors(path / "item_vectors.npy", vectors)
    write_index(path / "index.faiss", FaissIndex.build(vectors, IndexSettings()))
    sign(path)
    with pytest.raises(
        FormatError, match=r"holds 32 vectors of width 9, the model gives 32 of width 8"
    ):
        read_bundle(path)


def test_a_model_that_is_none_is_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    spec = json.loads((path / "model.json").read_text())["spec"]
    for changes, words in (
        ({"num_users": "many"}, r"model\.json is damaged: not what describes a model"),
        ({"num_users": 3}, r"model\.safetensors is damaged, or of another model than model\.json"),
        ({"num_users": -3}, r"model\.json is damaged"),
        ({"num_users": 40, "spec": spec | {"embedding_dim": 0}}, r"specification is damaged"),
        ({"spec": spec | {"surprise": 1}}, r"specification is damaged"),
    ):
        change_json(path / "model.json", **changes)
        sign(path)
        with pytest.raises(FormatError, match=words):
            read_bundle(path)


def test_features_and_settings_that_are_none_are_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    whole = (path / "features.json").read_text()
    change_json(path / "features.json", items=[{"name": "genre", "kind": "smell"}])
    sign(path)
    with pytest.raises(FormatError, match=r"features\.json is damaged"):
        read_bundle(path)
    (path / "features.json").write_text(whole)
    change_json(path / "index.json", m="thick")
    sign(path)
    with pytest.raises(FormatError, match=r"index\.json: The settings of the index are damaged"):
        read_bundle(path)
