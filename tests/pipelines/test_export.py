"""The stage `export`: as a command, and against the lists that recsys recommends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.export import export
from pipelines.update import update
from recsys import load_bundle
from recsys.config import ExportConfig, UpdateConfig, compose_config
from recsys.foundations import ConfigError

ROOT = Path(__file__).parents[2]


def run(bundle: Path, folder: Path, **settings: Any) -> Path:
    given = {"bundle": str(bundle), "threads": 1, **settings}
    return export(compose_config("export", ExportConfig, given), folder)


def check_lists(bundle: Path, folder: Path) -> pd.DataFrame:
    """Compare a plain product of what was exported with what recsys recommends; give the items."""
    items = pd.read_parquet(folder / "parquet" / "items.parquet")
    users = pd.read_parquet(folder / "users" / "users.parquet").set_index("user_id")
    best = load_bundle(bundle).recommend(k=10, exact=True, exclude_seen=False).to_pandas()
    best = best[~best["fallback"]]
    assert best["user_id"].nunique() > 100
    vectors = np.stack(items["vector"].to_list()).astype(np.float64)
    for user, mine in best.groupby("user_id"):
        scores = vectors @ users["vector"][user]
        order = np.argsort(-scores, kind="stable")[:10]
        assert items["item_id"].iloc[order].tolist() == mine["item_id"].tolist()
    return items


def test_a_plain_product_of_what_is_exported_ranks_as_recsys_does(
    trained: Any, tmp_path: Path
) -> None:
    folder = run(trained.bundle, tmp_path, form="parquet", users=True)
    items = check_lists(trained.bundle, folder)
    assert {"title", "price", "tags", "training_count"} <= set(items.columns)
    assert len(items) == 80


def test_items_that_were_added_replaced_and_withdrawn(
    trained: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pipelines.export")
    before = run(trained.bundle, tmp_path / "before", form="parquet", users=True)
    old = pd.read_parquet(before / "parquet" / "items.parquet").set_index("item_id")
    changed, gone = old.index[7], old.index[30]
    table = pd.DataFrame({"item_id": [changed, "cold"], "title": ["x", "y"], "price": [1, 2]})
    table["category"], table["tags"] = "category1", "tag-1|tag2"
    table.to_csv(tmp_path / "new.csv", index=False)
    settings = {"bundle": str(trained.bundle), "items": str(tmp_path / "new.csv"), "threads": 1}
    config = compose_config("update", UpdateConfig, settings | {"remove": [gone]})
    updated = update(config, tmp_path / "updated")
    folder = run(updated, tmp_path, users=True)
    assert caplog.messages[-1] == f"80 items: {folder}"  # 81, of which one is withdrawn
    new = check_lists(updated, folder).set_index("item_id")
    assert list(new.index) == [one for one in old.index if one != gone] + ["cold"]
    assert new["title"][[changed, "cold"]].tolist() == ["x", "y"]
    assert new["training_count"]["cold"] == 0
    same = [one for one in new.index if one not in (changed, "cold")]
    assert all(np.array_equal(new["vector"][one], old["vector"][one]) for one in same)
    points = json.loads((folder / "qdrant" / "points-000000.json").read_text())["points"]
    rows = [row for row in range(81) if row != 30]  # as before: a row never changes its meaning
    assert [point["id"] for point in points] == rows


def test_another_folder_is_refused_before_the_bundle_is_read(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "notes.txt").touch()
    with pytest.raises(ConfigError, match="is no export and is not replaced: choose another run_d"):
        run(tmp_path / "no bundle", tmp_path)


def test_the_command_writes_every_form(trained: Any, tmp_path: Path) -> None:
    words = [f"bundle={trained.bundle}", "run_dir=out", "columns=[price]", "threads=1"]
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.export", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"80 items: {tmp_path / 'out' / 'export'}" in done.stderr + done.stdout
    names = sorted(path.name for path in (tmp_path / "out" / "export").iterdir())
    assert names == ["export.json", "milvus", "opensearch", "parquet", "qdrant"]
