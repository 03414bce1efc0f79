"""The stage `baselines` on made-up data: what it writes, chooses, skips and refuses."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.baselines import baselines
from pipelines.prepare import prepare
from recsys.config import BaselinesConfig, PrepareConfig, compose_config
from recsys.evaluation import Comparison
from recsys.foundations import ConfigError

SMALL = {
    "evaluation.num_bootstrap": 50,
    "threads": 1,
    "ials.dim": [8],
    "ials.regularization": [0.01],
    "ials.unobserved_weight": [0.1, 1.0],
}
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
    names = {"popularity", "recent_popularity", "item_knn", "content_knn", "ease", "ials"}
    assert set(systems) == names
    assert written["skipped"].keys() == {"own_items"}
    assert "dataset.exclude_seen=true" in written["skipped"]["own_items"]
    for name in ("item_knn", "ease", "ials"):  # users prefer clusters, which popularity cannot know
        low, _ = systems[name]["difference_to_popularity"]["intervals"]["recall_at_10"]
        assert low > 0
        assert systems[name]["fitted_on"] == "training and validation"
    tried = systems["ease"]["tried"]
    assert [one["settings"]["lambda"] for one in tried] == [30, 100, 300, 1000, 3000]
    best = max(tried, key=lambda one: one["validation_recall_at_10"])
    assert systems["ease"]["settings"] == best["settings"]
    assert len(systems["item_knn"]["tried"]) == 4
    assert len(systems["ials"]["tried"]) == 2
    assert (tmp_path / "run" / "baselines_per_user.parquet").is_file()
    assert "item_knn" in capsys.readouterr().out


def test_skips_what_the_data_do_not_allow_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "irspack", None)
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
    assert written["skipped"]["content_knn"] == "items have no features"
    assert written["skipped"]["ials"].endswith("pip install 'recsys-retrieval[baselines]'")
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


def write_log(path: Path) -> Path:
    """Write a log of 40 users who take the same 4 items again and again, of 60 items."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, 60, (40, 4))
    rows = [
        (f"u{user}", f"i{own[user, rng.integers(4)]}", 1_700_000_000 + 100 * step + user)
        for step in range(20)
        for user in range(40)
    ]
    pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"]).to_csv(path, index=False)
    return path


def test_where_repeats_are_the_point_the_own_items_lead(tmp_path: Path) -> None:
    _, written = run_stage(
        tmp_path,
        dataset="table",
        dataset__interactions=str(write_log(tmp_path / "log.csv")),
        dataset__timestamp_unit="s",
        dataset__exclude_seen=False,
        systems=["own_items", "recent_popularity"],
        evaluation__k=[4],
    )
    assert written["skipped"] == {}
    own = written["systems"]["own_items"]
    # After 16 events or more of 4 items a user has had each but for 4 * 0.75^16 = 4 %.
    assert own["metrics"]["recall_at_4"] > 0.96
    assert len(own["tried"]) == 5
    assert own["num_filled_users"] < 40  # who have 4 different ones
    low, _ = own["difference_to_popularity"]["intervals"]["recall_at_4"]
    assert low > 0


def test_cold_items_are_found_by_their_content_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, written = run_stage(
        tmp_path,
        split="cold_items",
        evaluation__candidates="cold",
        evaluation__k=[2, 5],
        validate_at=2,
        systems=["item_knn", "content_knn", "ials"],
    )
    number = written["counts"]["num_ranked_items"]
    assert written["about"]["split"]["test_items"] == number == 12
    chance = written["chance"]["recall_at_2"]
    assert chance == 2 / number
    content = written["systems"]["content_knn"]
    assert content["intervals"]["recall_at_2"][0] > chance
    item_knn = written["systems"]["item_knn"]
    assert item_knn["num_filled_users"] == written["counts"]["num_users"]  # it knows none of them
    assert item_knn["metrics"] == written["systems"]["popularity"]["metrics"]
    shown = capsys.readouterr().out
    assert "Cold items (12 of 60) among themselves" in shown
    assert re.search(rf"chance +│ +│ +{written['chance']['recall_at_5']:.4f}", shown)


def test_a_bundles_model_is_compared_with_every_baseline(
    trained: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = json.loads((trained.folder / "report.json").read_text())
    settings = SMALL | {
        "bundle": str(trained.bundle),
        "systems": ["item_knn", "ease"],
        "evaluation.k": [1, 5, 10],
        "run_dir": str(tmp_path),
    }
    comparison = baselines(compose_config("baselines", BaselinesConfig, settings), tmp_path)
    systems = json.loads((tmp_path / "baselines.json").read_text())["systems"]
    assert list(comparison.systems) == ["model", "popularity", "item_knn", "ease"]
    assert systems["model"]["metrics"] == report["metrics"]
    assert systems["popularity"]["difference_of_model"] == report["difference_to_popularity"]
    assert systems["model"]["bundle"] == str(trained.bundle)
    for name in ("item_knn", "ease"):
        gap = systems[name]["difference_of_model"]["metrics"]["recall_at_10"]
        expected = report["metrics"]["recall_at_10"] - systems[name]["metrics"]["recall_at_10"]
        assert gap == pytest.approx(expected, abs=1e-12)
    assert "difference: of the model to this system" in capsys.readouterr().out


def test_a_bundle_of_another_dataset_is_refused(
    trained: Any, tiny: dict[str, Any], tmp_path: Path
) -> None:
    given = {key: value for key, value in tiny.items() if key.startswith("dataset")}
    config = compose_config("prepare", PrepareConfig, given | {"dataset.seed": 7})
    other = prepare(config, tmp_path / "other")
    settings = {"bundle": str(trained.bundle), "dataset_dir": str(other)}
    with pytest.raises(ConfigError, match=r"was not trained on dataset_dir=.*fingerprints differ"):
        baselines(compose_config("baselines", BaselinesConfig, settings), tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("systems", ["svd"], "systems must be one of recent_popularity, own_items, item_knn"),
        ("systems", ["ease", "ease"], "systems must hold each name once"),
        ("ease.regularization", [0.0], "ease.regularization must be above 0"),
        ("ease.regularization", [], "ease.regularization must hold at least one value"),
        ("ease.max_items", 0, "ease.max_items must be at least 1"),
        ("item_knn.num_neighbours", [0], "item_knn.num_neighbours must be at least 1"),
        ("item_knn.shrinkage", [-1.0], "item_knn.shrinkage must be at least 0"),
        ("recent_popularity.days", [0.0], "recent_popularity.days must be above 0"),
        ("own_items.decay", [1.5], "own_items.decay must be above 0 and at most 1, got 1.5"),
        ("own_items.decay", [], "own_items.decay must hold at least one value"),
        ("content_knn.decay", [0.0], "content_knn.decay must be above 0 and at most 1, got 0"),
        ("ials.dim", [0], "ials.dim must be at least 1"),
        ("ials.regularization", [0.0], "ials.regularization must be above 0"),
        ("ials.unobserved_weight", [], "ials.unobserved_weight must hold at least one value"),
        ("ials.iterations", 0, "ials.iterations must be at least 1"),
        ("evaluation.candidates", "warm", "evaluation.candidates must be one of all, cold"),
        ("validate_at", 0, "validate_at must be at least 1"),
    ],
)
def test_refuses_impossible_settings_by_name(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compose_config("baselines", BaselinesConfig, {key: value})
