"""The folder of an export: what it replaces, its manifest, and the users."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from recsys.bundle import Bundle
from recsys.export import forms_of
from recsys.foundations import ArgumentError, ConfigError
from recsys.models import UserTowerSpec
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]
Export = Callable[..., Path]
MANY = [f"i{n}" for n in range(60)]


def test_the_manifest_says_what_was_exported(odd_bundle: Bundle, export: Export) -> None:
    folder = export(odd_bundle, "all", columns=("price", "tags"), name="films")
    manifest = json.loads((folder / "export.json").read_text())
    assert manifest == {
        "format": "recsys-export",
        "format_version": 1,
        "bundle_id": odd_bundle.bundle_id,
        "forms": ["parquet", "qdrant", "milvus", "opensearch"],
        "name": "films",
        "metric": "inner_product",
        "dim": 8,
        "bias_place": None,
        "num_items": 9,
        "num_users": None,
        "columns": {"price": "double", "tags": "list<element: string>"},
    }
    folders = sorted(path.name for path in folder.iterdir() if path.is_dir())
    assert folders == sorted(forms_of("all"))


def test_an_export_replaces_an_export(odd_bundle: Bundle, export: Export) -> None:
    export(odd_bundle, "all")
    folder = export(odd_bundle, "parquet")
    assert [path.name for path in sorted(folder.iterdir())] == ["export.json", "parquet"]


@pytest.mark.parametrize("content", ["", '{"format": "recsys-bundle"}', "[]"])
def test_what_is_no_export_stays(
    odd_bundle: Bundle, export: Export, tmp_path: Path, content: str
) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "export.json").write_text(content)
    with pytest.raises(ConfigError, match="is no export and is not replaced: choose another"):
        export(odd_bundle, "parquet")
    assert [path.name for path in (tmp_path / "export").iterdir()] == ["export.json"]


def test_an_empty_folder_is_filled_and_a_file_is_not(
    odd_bundle: Bundle, export: Export, tmp_path: Path
) -> None:
    (tmp_path / "export").mkdir()
    assert (export(odd_bundle, "parquet") / "parquet" / "items.parquet").is_file()
    with pytest.raises(ArgumentError, match="`name` must hold no capital"):
        export(odd_bundle, "opensearch", name="Films")
    assert (tmp_path / "export" / "parquet").is_dir()


def test_a_file_in_the_way_is_named(odd_bundle: Bundle, export: Export, tmp_path: Path) -> None:
    (tmp_path / "export").write_text("mine")
    with pytest.raises(ConfigError, match="is no export"):
        export(odd_bundle, "parquet")
    assert (tmp_path / "export").read_text() == "mine"


def test_users_are_embedded_as_lookups_do(
    make_bundle: MakeBundle, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recsys.export.users._AT_ONCE", 7)
    tower = UserTowerSpec(history="attention", num_interests=3, use_id=False)
    bundle = make_bundle(MANY, item_bias=True, user_tower=tower)
    folder = export(bundle, "parquet", users=True)
    table = pq.read_table(folder / "users" / "users.parquet")
    assert table.equals(Lookup(bundle).embed_users())
    assert table.num_rows == 180
    manifest = json.loads((folder / "export.json").read_text())
    assert (manifest["num_users"], manifest["bias_place"]) == (60, 8)


def test_without_its_bias_an_items_vector_asks_for_its_neighbours(
    make_bundle: MakeBundle, export: Export
) -> None:
    bundle = make_bundle(MANY, item_bias=True)
    folder = export(bundle, "parquet")
    table = pq.read_table(folder / "parquet" / "items.parquet")
    place = json.loads((folder / "export.json").read_text())["bias_place"]
    ids, vectors = table["item_id"].to_pylist(), np.array(table["vector"].to_pylist(), np.float64)
    query = vectors[ids.index("i7")].copy()
    query[place] = 0
    order = [ids[n] for n in np.argsort(-vectors @ query, kind="stable") if ids[n] != "i7"]
    near = Lookup(bundle).neighbours(["i7"], k=10, exact=True)
    assert near["item_id"].to_pylist() == order[:10]
