"""The stage `export`: as a command, and against the lists that recsys recommends."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.export import export
from recsys import load_bundle
from recsys.config import ExportConfig, compose_config
from recsys.foundations import ConfigError

ROOT = Path(__file__).parents[2]


def run(bundle: Path, folder: Path, **settings: Any) -> Path:
    given = {"bundle": str(bundle), "threads": 1, **settings}
    return export(compose_config("export", ExportConfig, given), folder)


def test_a_plain_product_of_what_is_exported_ranks_as_recsys_does(
    trained: Any, tmp_path: Path
) -> None:
    folder = run(trained.bundle, tmp_path, form="parquet", users=True)
    items = pd.read_parquet(folder / "parquet" / "items.parquet")
    users = pd.read_parquet(folder / "users" / "users.parquet").set_index("user_id")
    assert {"title", "price", "tags", "training_count"} <= set(items.columns)
    best = load_bundle(trained.bundle).recommend(k=10, exact=True, exclude_seen=False).to_pandas()
    best = best[~best["fallback"]]
    assert best["user_id"].nunique() > 100
    vectors = np.stack(items["vector"].to_list()).astype(np.float64)
    for user, mine in best.groupby("user_id"):
        scores = vectors @ users["vector"][user]
        order = np.argsort(-scores, kind="stable")[:10]
        assert items["item_id"].iloc[order].tolist() == mine["item_id"].tolist()


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
