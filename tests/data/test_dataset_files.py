"""A prepared data set on disk: comes back unchanged, or is refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from recsys.data import (
    FeatureOptions,
    FilterSettings,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.foundations import (
    ConfigError,
    FormatError,
    MissingFileError,
    Ragged,
    canonical_json,
    sha256_text,
)


def make_dataset(folder: Path, *, num_rows: int = 400, seed: int = 0) -> Path:
    generator = np.random.default_rng(seed)
    users = [f"u{user}" for user in generator.integers(0, 30, num_rows)]
    items = [f"i{item}" for item in generator.integers(0, 50, num_rows)]
    log = pa.table(
        {
            "user_id": pa.array(users, pa.large_string()),
            "item_id": pa.array(items, pa.large_string()),
            "timestamp": pa.array(10**15 + np.sort(generator.integers(0, 10**9, num_rows))),
            "weight": pa.array(generator.random(num_rows), pa.float32()),
            "hour": generator.integers(0, 24, num_rows),
        }
    )
    catalogue = pa.table(
        {
            "id": pa.array([f"i{item}" for item in range(50)], pa.large_string()),
            "tags": pa.array([[f"t{item % 3}", f"t{item % 5}"][: item % 4] for item in range(50)]),
            "name": [f"Name of {item}" for item in range(50)],
            "vector": pa.array([[float(item), 1.0] for item in range(50)]),
        }
    )
    options = {
        "tags": FeatureOptions(),
        "name": FeatureOptions(kind="text", num_buckets=100),
        "vector": FeatureOptions(),
    }
    return prepare_dataset(
        RawLog(log, "time", {}, num_rows, [{"path": "log.csv", "size_bytes": 1, "sha256": "0"}]),
        items=RawEntities(catalogue, {}, []),
        users=None,
        output=folder,
        filters=FilterSettings(),
        split=SplitSettings(rule="temporal"),
        seed=0,
        exclude_seen=True,
        item_features=options,
        context_features={"hour": FeatureOptions(kind="bucket", num_buckets=4)},
        reading={"columns": {"user": "user_id"}},
    )


def test_says_what_the_contract_asks_of_the_manifest(tmp_path: Path) -> None:
    manifest = json.loads((make_dataset(tmp_path / "d") / "manifest.json").read_text())
    assert (manifest["format"], manifest["format_version"]) == ("recsys-dataset", 2)
    assert manifest["sources"] == [
        {"table": "interactions", "path": "log.csv", "size_bytes": 1, "sha256": "0"}
    ]
    assert manifest["reading"] == {"columns": {"user": "user_id"}}
    assert [entry["name"] for entry in manifest["filters"]] == ["duplicates", "min_interactions"]
    assert manifest["split"]["rule"] == "temporal"
    assert manifest["split"]["test_from"].startswith("2001-09-09T")
    assert (manifest["seed"], manifest["clock"], manifest["exclude_seen"]) == (0, "time", True)
    assert manifest["features"]["items"][1] == {"name": "name", "kind": "text", "size": 100}
    columns = ["context_0", "item", "offsets", "timestamp", "user", "weight"]
    parts = ("train", "validation", "test")
    assert set(manifest["files"]) == {
        *("features.json", "items.parquet", "users.parquet"),
        *(f"{part}/part-00000.parquet" for part in parts),
        *(f"columns/{part}/{name}.npy" for part in parts for name in columns),
    }


def test_the_files_hold_the_documented_columns(tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "d")
    train = pq.read_schema(folder / "train" / "part-00000.parquet")
    assert {name: str(train.field(name).type) for name in train.names} == {
        "user": "int32",
        "item": "int32",
        "timestamp": "int64",
        "weight": "float",
        "context_hour": "int32",
    }
    items = pq.read_schema(folder / "items.parquet").names
    assert items == [
        "id",
        "count",
        "feature_tags",
        "feature_name",
        "feature_vector",
        "display_tags",
        "display_name",
    ]


def test_encoded_features_come_back(tmp_path: Path) -> None:
    dataset = read_prepared(make_dataset(tmp_path / "d"))
    row = int(dataset.items.vocabulary.rows(["i7"])[0])
    tags, vectors = (dataset.items.features.columns[name] for name in ("tags", "vector"))
    assert isinstance(tags, Ragged)
    assert isinstance(vectors, np.ndarray)
    values = dataset.items.features.schema.specs[0].values
    assert sorted(values[code - 1] for code in tags[row]) == ["t1", "t2"]  # 7 % 3, 7 % 5
    assert_array_equal(vectors[row], np.array([7, 1], np.float32))
    assert dataset.context_schema.names == ("hour",)
    assert len(dataset.train.context) == len(dataset.train)


def test_a_second_preparation_replaces_the_first(tmp_path: Path) -> None:
    first = read_prepared(make_dataset(tmp_path / "d"))
    second = read_prepared(make_dataset(tmp_path / "d", num_rows=300))
    assert len(second.train) < len(first.train)
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("name", ["items.parquet", "features.json", "train/part-00000.parquet"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = make_dataset(tmp_path / "d")
    (folder / name).unlink()
    with pytest.raises(FormatError, match=f"{name} is missing"):
        read_prepared(folder)


@pytest.mark.parametrize("name", ["users.parquet", "features.json", "test/part-00000.parquet"])
def test_a_file_with_one_byte_changed_is_named(tmp_path: Path, name: str) -> None:
    folder = make_dataset(tmp_path / "d")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(FormatError, match=f"{name} is damaged"):
        read_prepared(folder)


def test_a_file_of_another_data_set_is_named(tmp_path: Path) -> None:
    folder, other = make_dataset(tmp_path / "d"), make_dataset(tmp_path / "e", seed=1)
    (folder / "items.parquet").write_bytes((other / "items.parquet").read_bytes())
    with pytest.raises(FormatError, match=r"items\.parquet is damaged"):
        read_prepared(folder)


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_an_unknown_format_version_is_refused_by_name(tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "d")
    edit(folder, lambda manifest: manifest.update(format_version=1))
    with pytest.raises(FormatError, match="has the format version 1; this release reads 2"):
        read_prepared(folder)


def test_a_manifest_whose_content_was_changed_is_refused(tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "d")
    edit(folder, lambda manifest: manifest.update(exclude_seen=False))
    with pytest.raises(FormatError, match="its fingerprint is not that of its content"):
        read_prepared(folder)


def test_a_manifest_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "d")
    edit(folder, lambda manifest: manifest.update(format="recsys-bundle"))
    with pytest.raises(FormatError, match="is not the manifest of a prepared data set"):
        read_prepared(folder)


def test_no_data_set_at_all_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"manifest\.json does not exist"):
        read_prepared(tmp_path / "nowhere")


def test_a_damaged_file_is_refused_even_if_hashes_are_not_compared(tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "d")
    size = (folder / "items.parquet").stat().st_size
    (folder / "items.parquet").write_bytes(bytes(size))
    with pytest.raises(FormatError, match="is damaged"):
        read_prepared(folder, verify=False)


def test_the_fingerprint_can_be_computed_from_the_manifest(tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "d")
    manifest = json.loads((folder / "manifest.json").read_text())
    left_out = ("fingerprint", "summary", "warnings")
    content = {key: value for key, value in manifest.items() if key not in left_out}
    for source in content["sources"]:
        del source["path"]
    assert read_prepared(folder).fingerprint == sha256_text(canonical_json(content))


def test_a_data_set_replaces_nothing_but_a_data_set(tmp_path: Path) -> None:
    output = tmp_path / "logs"
    output.mkdir()
    make_dataset(output)  # an empty folder may be taken
    first = read_prepared(output).fingerprint
    (output / "features.json").unlink()
    make_dataset(output)  # and a damaged data set mended
    assert read_prepared(output).fingerprint == first
    (tmp_path / "mine").mkdir()
    for name, text in (("manifest.json", "{}"), ("manifest.json", "["), ("log.csv", "a,b")):
        (tmp_path / "mine" / name).write_text(text)
        with pytest.raises(ConfigError, match=r"mine holds other files than a prepared data set"):
            make_dataset(tmp_path / "mine")
    assert (tmp_path / "mine" / "log.csv").read_text() == "a,b"
    with pytest.raises(ConfigError, match=r"log\.csv is a file; a folder is to be written"):
        make_dataset(tmp_path / "mine" / "log.csv")
