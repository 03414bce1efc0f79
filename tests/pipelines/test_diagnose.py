"""The stage `diagnose` on made-up data: what it writes, says, tracks and refuses."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.diagnose import diagnose
from recsys.config import DiagnoseConfig, compose_config
from recsys.foundations import ConfigError
from recsys.tracking import NullTracker

SMALL = {
    "dataset": "synthetic",
    "dataset.num_users": 120,
    "dataset.num_items": 80,
    "dataset.num_interactions": 2400,
    "dataset.num_clusters": 6,
    "model.embedding_dim": 8,
    "estimators": ["full_softmax", "standard_uniform", "in_batch", "importance_sampling", "bpr"],
    "sample_sizes": [8, 32],
    "num_draws": 4,
    "batch_size": 128,
    "num_batches": 2,
    "num_bootstrap": 50,
    "threads": 1,
}


@pytest.fixture(autouse=True)
def pictures_as_asked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures of a test that does not ask for them."""
    if "with_plots" not in request.fixturenames:
        monkeypatch.setattr("recsys.diagnosis.results.write_diagnosis_plots", lambda *_: [])


@pytest.fixture
def run_stage(prepared_root: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Give a function that runs the stage and reads its file; `__` in a name stands for a dot."""

    def run(**settings: Any) -> dict[str, Any]:
        keys = {name.replace("__", "."): value for name, value in settings.items()}
        keys = {"dataset.prepared_root": str(prepared_root), "run_dir": str(tmp_path)} | keys
        cfg = compose_config("diagnose", DiagnoseConfig, SMALL | keys)
        diagnose(cfg, tmp_path)
        written: dict[str, Any] = json.loads((tmp_path / "diagnosis.json").read_text())
        return written

    return run


def test_a_bundle_is_diagnosed_on_the_data_set_it_was_trained_on(
    run_stage: Callable[..., dict[str, Any]],
    trained: Any,
    dataset_of: Callable[[Path], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = run_stage(bundle=str(trained.bundle))
    about = written["about"]
    assert about["bundle"] == str(trained.bundle)
    assert about["dataset_dir"] == str(dataset_of(trained.bundle))
    steps = {(one["estimator"], one["sample_size"]): one["step"] for one in written["measurements"]}
    assert steps["full_softmax", 80]["error"]["value"] < 1e-4
    for name in ("standard_uniform", "importance_sampling"):
        few, many = (steps[name, size]["cosine"]["value"] for size in (8, 32))
        assert 0 < few < many
    assert steps["in_batch", 8] is None
    assert steps["in_batch", 128]["seconds"] > 0
    said = capsys.readouterr().out
    assert written["advice"]["sentence"] in " ".join(said.split())
    assert "fresh model" not in said
    assert "the validation part has 120 positives to measure on, not 256." in said


def test_without_a_bundle_a_fresh_model_is_diagnosed_and_said_to_be_one(
    run_stage: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    written = run_stage(estimators=["full_softmax", "mixed"], model="factorization")
    assert written["about"]["bundle"] is None
    assert "a fresh model that has not been trained" in capsys.readouterr().out
    again = run_stage(estimators=["full_softmax", "mixed"], model="factorization")
    for first, second in zip(written["measurements"], again["measurements"], strict=True):
        assert first["gradients"] == second["gradients"]


class Recorder(NullTracker):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.files: list[str] = []

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        self.metrics |= metrics

    def log_artifact(self, path: Path, folder: str | None = None) -> None:
        self.files.append(f"{folder}/{path.name}")


def test_numbers_and_files_are_tracked(
    run_stage: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, with_plots: None
) -> None:
    recorder = Recorder()
    monkeypatch.setattr("recsys.config.build.build_tracker", lambda *_, **__: recorder)
    run_stage(estimators=["full_softmax"])
    assert recorder.metrics["full_softmax_80_step_cosine"] == pytest.approx(1, abs=1e-4)
    assert recorder.files == [
        f"diagnosis/{name}"
        for name in ("diagnosis.json", "bias.png", "cosine.png", "popularity.png")
    ]


def test_refuses_a_bundle_of_another_data_set(
    run_stage: Callable[..., dict[str, Any]], trained: Any, tmp_path: Path
) -> None:
    run_stage(estimators=["full_softmax"], dataset__num_items=70)
    other = json.loads((tmp_path / "diagnosis.json").read_text())["about"]["dataset_dir"]
    with pytest.raises(ConfigError, match="was not trained on dataset_dir="):
        run_stage(bundle=str(trained.bundle), dataset_dir=other)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("estimators", ["guess"], "estimators must be one of full_softmax, standard_uniform"),
        ("estimators", [], "estimators must hold at least one value"),
        ("estimators", ["bpr", "bpr"], "estimators must hold each value once"),
        ("sample_sizes", [0], "sample_sizes must be at least 1"),
        ("sample_sizes", [], "sample_sizes must hold at least one value"),
        ("num_positives", 255, "num_positives must be at least 256"),
        ("num_draws", 1, "num_draws must be at least 2"),
        ("batch_size", 1, "batch_size must be at least 2"),
        ("num_batches", 0, "num_batches must be at least 1"),
        ("target", 0.0, "target must be above 0"),
        ("unigram_share", 0.0, "unigram_share must be above 0 and at most 1"),
        ("ess_quantile", 1.0, "ess_quantile must be at least 0 and below 1"),
        ("burn_in_share", 1.0, "burn_in_share must be at least 0 and below 1"),
        ("max_exact_items", 0, "max_exact_items must be at least 1"),
        ("k", 0, "k must be at least 1"),
        ("max_users", 0, "max_users must be at least 1"),
        ("confidence", 1.0, "confidence must lie between 0 and 1"),
    ],
)
def test_refuses_impossible_settings_by_name(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compose_config("diagnose", DiagnoseConfig, {key: value})
