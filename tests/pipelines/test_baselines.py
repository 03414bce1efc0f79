"""The stage `baselines` on made-up data: what it writes, chooses, skips and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.baselines import baselines
from recsys.config import BaselinesConfig, compose_config
from recsys.evaluation import Comparison
from recsys.foundations import ConfigError

SMALL = {"evaluation.num_bootstrap": 50, "threads": 1}
SYNTHETIC = {
    "dataset": "synthetic",
    "dataset.num_users": 150,
    "dataset.num_items": 60,
    "dataset.num_interactions": 3000,
}


def run_stage(folder: Path, **settings: Any) -> tuple[Comparison, dict[str, Any]]:
    keys = {name.replace("__", "."): value for name, value in settings.items()}
    keys = keys if "dataset" in keys else SYNTHETIC | keys
    places = {"run_dir": str(folder / "run"), "dataset.prepared_root": str(folder / "prepared")}
    cfg = compose_config("baselines", BaselinesConfig, SMALL | places | keys)
    comparison = baselines(cfg, Path(cfg.run_dir))
    return comparison, json.loads((folder / "run" / "baselines.json").read_text())


def test_finds_the_planted_structure_and_writes_what_it_chose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, written = run_stage(tmp_path)
    systems = written["systems"]
    assert set(systems) == {"popularity", "recent_popularity", "item_knn", "ease"}
    for name in ("item_knn", "ease"):  # users prefer clusters, which popularity cannot know
        low, _ = systems[name]["difference_to_popularity"]["intervals"]["recall_at_10"]
        assert low > 0
        assert systems[name]["fitted_on"] == "training and validation"
    tried = systems["ease"]["tried"]
    assert [one["settings"]["lambda"] for one in tried] == [30, 100, 300, 1000]
    best = max(tried, key=lambda one: one["validation_recall_at_10"])
    assert systems["ease"]["settings"] == best["settings"]
    assert len(systems["item_knn"]["tried"]) == 4
    assert (tmp_path / "run" / "baselines_per_user.parquet").is_file()
    assert "item_knn" in capsys.readouterr().out


def test_skips_what_the_data_do_not_allow_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log.csv"
    rows = [f"u{n % 20},i{(n * n) % 17},{n}" for n in range(200)]
    log.write_text("\n".join(["user_id,item_id,timestamp", *rows]))
    _, written = run_stage(
        tmp_path,
        dataset="table",
        dataset__interactions=str(log),
        dataset__timestamp_unit="order",
        ease__max_items=5,
    )
    assert set(written["systems"]) == {"popularity", "item_knn"}
    assert written["skipped"]["recent_popularity"] == "the data set has no clock"
    assert "more than ease.max_items=5" in written["skipped"]["ease"]
    assert "ease is skipped" in caplog.text


def test_one_setting_needs_no_validation_and_no_refit_learns_from_training_alone(
    tmp_path: Path,
) -> None:
    settings = {"systems": ["ease"], "ease__regularization": [50.0]}
    refitted, _ = run_stage(tmp_path / "a", **settings)
    alone, written = run_stage(tmp_path / "b", refit=False, **settings)
    assert written["systems"]["ease"]["fitted_on"] == "training"
    assert written["systems"]["ease"]["tried"] == []
    assert alone.systems["popularity"] == refitted.systems["popularity"]
    assert alone.systems["ease"].metrics != refitted.systems["ease"].metrics


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("systems", ["svd"], "systems must be one of recent_popularity, item_knn, ease"),
        ("systems", ["ease", "ease"], "systems must hold each name once"),
        ("ease.regularization", [0.0], "ease.regularization must be above 0"),
        ("ease.regularization", [], "ease.regularization must hold at least one value"),
        ("ease.max_items", 0, "ease.max_items must be at least 1"),
        ("item_knn.num_neighbours", [0], "item_knn.num_neighbours must be at least 1"),
        ("item_knn.shrinkage", [-1.0], "item_knn.shrinkage must be at least 0"),
        ("recent_popularity.days", [0.0], "recent_popularity.days must be above 0"),
        ("validate_at", 0, "validate_at must be at least 1"),
    ],
)
def test_refuses_impossible_settings_by_name(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compose_config("baselines", BaselinesConfig, {key: value})
