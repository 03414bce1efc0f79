"""Bundles: all that a lookup needs, the way there and back, and every damage refused by name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recsys.bundle import read_bundle, replace_index, write_bundle
from recsys.data import PreparedDataset
from recsys.foundations import ArgumentError, FormatError, MissingFileError, ShapeError
from recsys.index import FaissIndex, IndexSettings
from recsys.models import encode_candidates

MakeBundle = Callable[..., Path]


def flip_a_byte(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def test_what_is_read_is_what_was_written(
    make_bundle: MakeBundle, dataset: PreparedDataset
) -> None:
    bundle = read_bundle(make_bundle(item_bias=True))
    assert bundle.users.vocabulary.ids.equals(dataset.users.vocabulary.ids)
    assert bundle.items.vocabulary.ids.equals(dataset.items.vocabulary.ids)
    assert np.array_equal(bundle.items.counts, dataset.items.counts)
    assert bundle.items.display is not None
    assert bundle.items.display.equals(dataset.items.display)
    again = encode_candidates(bundle.model, bundle.items.features, bundle.num_items)
    assert np.array_equal(again, bundle.item_vectors)
    assert bundle.item_vectors.shape == (dataset.num_items, 9)  # 8 and the bias
    assert (bundle.num_users, bundle.num_items) == (dataset.num_users, dataset.num_items)
    assert (bundle.exclude_seen, bundle.clock) == (True, "time")
    assert bundle.dataset_fingerprint == dataset.fingerprint
    assert bundle.config["run_dir"] == "somewhere"
    assert bundle.scores == {"recall_at_10": 0.25}
    assert not bundle.model.training


def test_histories_are_training_and_validation_events_oldest_first_with_their_times(
    make_bundle: MakeBundle, dataset: PreparedDataset
) -> None:
    bundle = read_bundle(make_bundle())
    assert len(bundle.histories) == len(dataset.users)
    assert bundle.history_times is not None
    for user in range(dataset.num_users):
        train = dataset.train.items[dataset.train.users == user].tolist()
        validation = dataset.validation.items[dataset.validation.users == user].tolist()
        known = [item for item in train + validation if item < dataset.num_items]
        assert bundle.histories[user].tolist() == known
        times = [
            time
            for part in (dataset.train, dataset.validation)
            if part.timestamps is not None
            for time in part.timestamps[(part.users == user) & (part.items < dataset.num_items)]
        ]
        assert bundle.history_times[user].tolist() == times
        assert not set(known) & set(dataset.test.items[dataset.test.users == user].tolist())


def test_the_identity_is_that_of_the_content(make_bundle: MakeBundle) -> None:
    first, second, third = (
        read_bundle(make_bundle(name, seed=seed)) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert first.bundle_id == second.bundle_id
    assert first.bundle_id != third.bundle_id
    assert "created" in first.manifest["provenance"]


def test_reading_leaves_the_random_streams_alone(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    read_bundle(path)
    assert torch.equal(torch.rand(3), expected)


def test_one_byte_changed_is_refused_with_the_file_named(
    make_bundle: MakeBundle, tmp_path: Path
) -> None:
    whole = make_bundle("whole")
    names = sorted(file.name for file in whole.iterdir())
    assert len(names) == 12
    for name in names:
        path = shutil.copytree(whole, tmp_path / "copy")
        flip_a_byte(path / name, (path / name).stat().st_size // 2)
        with pytest.raises(FormatError, match=name.replace(".", r"\.")):
            read_bundle(path)
        shutil.rmtree(path)


def test_a_missing_file_is_refused_by_name(make_bundle: MakeBundle, tmp_path: Path) -> None:
    whole = make_bundle("whole")
    for name in sorted(file.name for file in whole.iterdir()):
        path = shutil.copytree(whole, tmp_path / "copy")
        (path / name).unlink()
        with pytest.raises((FormatError, MissingFileError), match=name.replace(".", r"\.")):
            read_bundle(path, verify=False)
        shutil.rmtree(path)


def test_files_of_two_bundles_are_refused_by_name(make_bundle: MakeBundle, tmp_path: Path) -> None:
    first, second = make_bundle("a", seed=0), make_bundle("b", seed=1)
    for name in ("model.safetensors", "item_vectors.npy", "index.faiss"):
        path = shutil.copytree(first, tmp_path / "mixed")
        shutil.copyfile(second / name, path / name)
        with pytest.raises(FormatError, match=name.replace(".", r"\.")):
            read_bundle(path)
        shutil.rmtree(path)


def test_a_truncated_file_is_refused_without_hashing(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    vectors = (path / "item_vectors.npy").read_bytes()
    (path / "item_vectors.npy").write_bytes(vectors[:-4])
    with pytest.raises(FormatError, match=r"item_vectors\.npy is damaged: .* bytes"):
        read_bundle(path, verify=False)


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("model.safetensors", 3, r"model\.safetensors is damaged"),
        ("users.parquet", -2, r"users\.parquet is damaged"),
        ("index.faiss", 4, r"index\.faiss holds"),
        ("item_vectors.npy", 2, r"item_vectors\.npy is damaged"),
        ("history_offsets.npy", -8, r"history_offsets\.npy does not divide"),
        ("history_times.npy", 2, r"history_times\.npy is damaged"),
        ("model.json", 3, r"model\.json is damaged"),
    ],
)
def test_damage_is_refused_even_where_hashes_are_not_compared(
    make_bundle: MakeBundle, name: str, place: int, words: str
) -> None:
    path = make_bundle()
    flip_a_byte(path / name, place)
    with pytest.raises(FormatError, match=words):
        read_bundle(path, verify=False)


@pytest.mark.parametrize("version", [1, 2, 99])
def test_another_version_is_refused_by_number(make_bundle: MakeBundle, version: int) -> None:
    # Versions 1 and 2 knew nothing of the times of histories, and of repeats.
    path = make_bundle() / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["format_version"] == 3
    path.write_text(json.dumps(manifest | {"format_version": version}))
    words = f"format version {version}; this release reads 3 and 4: train"
    with pytest.raises(FormatError, match=words):
        read_bundle(path.parent)


def test_a_manifest_that_is_none_is_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle() / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"scores": {"recall_at_10": 0.9}}))
    with pytest.raises(FormatError, match=r"manifest\.json is damaged: its SHA-256"):
        read_bundle(path.parent)
    path.write_text("[]")
    with pytest.raises(FormatError, match="is not the manifest of a bundle"):
        read_bundle(path.parent)
    with pytest.raises(MissingFileError, match=r"manifest\.json does not exist"):
        read_bundle(path.parent / "elsewhere")


def test_the_folder_of_a_run_is_told_from_its_bundle(
    make_bundle: MakeBundle, tmp_path: Path
) -> None:
    shutil.copytree(make_bundle(), tmp_path / "run" / "bundle")
    with pytest.raises(MissingFileError, match=r"its bundle is .*/run/bundle\.$"):
        read_bundle(tmp_path / "run")


def test_another_index_makes_another_bundle_that_shares_the_rest(
    make_bundle: MakeBundle, tmp_path: Path
) -> None:
    bundle = read_bundle(make_bundle())
    index = FaissIndex.build(np.array(bundle.item_vectors), IndexSettings(kind="hnsw", m=4))
    path = replace_index(
        bundle, tmp_path / "other", index, scores={"recall_at_10": 0.24}, provenance={}
    )
    other = read_bundle(path)
    assert other.bundle_id != bundle.bundle_id
    assert other.index.kind == "hnsw"
    assert other.config["index"]["m"] == 4
    assert other.scores == {"recall_at_10": 0.24}
    assert other.manifest["parent"] == bundle.bundle_id
    assert (path / "item_vectors.npy").samefile(bundle.path / "item_vectors.npy")
    assert read_bundle(bundle.path).bundle_id == bundle.bundle_id
    with pytest.raises(ArgumentError, match="is the bundle itself"):
        replace_index(bundle, bundle.path, index, scores={}, provenance={})


def test_files_are_copied_where_they_cannot_be_shared(
    make_bundle: MakeBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another disk")

    bundle = read_bundle(make_bundle())
    monkeypatch.setattr("os.link", refuse)
    path = replace_index(bundle, tmp_path / "other", bundle.main_index, scores={}, provenance={})
    assert read_bundle(path).bundle_id == bundle.bundle_id
    fewer = FaissIndex.build(np.array(bundle.item_vectors[:-1]), IndexSettings())
    with pytest.raises(ArgumentError, match="`index` must hold 32 vectors, got 31"):
        replace_index(bundle, tmp_path / "third", fewer, scores={}, provenance={})


def test_parts_that_do_not_fit_are_refused_before_anything_is_written(
    make_bundle: MakeBundle, dataset: PreparedDataset, tmp_path: Path
) -> None:
    bundle = read_bundle(make_bundle())
    vectors = np.array(bundle.item_vectors)
    fewer = FaissIndex.build(vectors[:-1], IndexSettings())
    rest: dict[str, Any] = {"model": bundle.model, "dataset": dataset, "config": {}, "scores": {}}
    with pytest.raises(ArgumentError, match="`index` must hold 32 vectors, got 31"):
        write_bundle(tmp_path / "new", item_vectors=vectors, index=fewer, provenance={}, **rest)
    with pytest.raises(ShapeError, match="`item_vectors` must have shape"):
        write_bundle(
            tmp_path / "new", item_vectors=vectors[:-1], index=fewer, provenance={}, **rest
        )
    assert not (tmp_path / "new").exists()
