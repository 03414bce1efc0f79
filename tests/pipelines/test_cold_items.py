"""Items held out entirely: trained for, ranked among themselves, by the stages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import TrainConfig, compose_config
from recsys.foundations import ConfigError

COLD = {
    "split": "cold_items",
    "split.validation_share": 0.2,
    "evaluation.candidates": "cold",
    "trainer.validate_at": 5,
    "trainer.epochs": 8,
    "model.item_tower.id_dropout": 0.5,
}


def test_training_validates_and_reports_on_cold_items_and_evaluate_agrees(
    tiny: dict[str, Any],
    tmp_path: Path,
    run_evaluate: Callable[..., dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    bundle = train(compose_config("train", TrainConfig, tiny | COLD), tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["counts"]["num_ranked_items"] == report["about"]["split"]["test_items"] == 16
    assert report["chance"]["recall_at_5"] == 5 / 16
    # The features tell the planted cluster, of which users have three among six.
    assert report["intervals"]["recall_at_5"][0] > 1.2 * report["chance"]["recall_at_5"]
    changes: dict[str, Any] = {"evaluation.candidates": "cold", "evaluation.num_bootstrap": 50}
    again = run_evaluate(tmp_path / "test", bundle=str(bundle), k=[1, 5, 10], **changes)
    for key in ("metrics", "through_index", "popularity", "chance", "likelihood"):
        assert again[key] == report[key]
    changes["evaluation.part"] = "validation"
    validation = run_evaluate(tmp_path / "validation", bundle=str(bundle), k=[5], **changes)
    score = read_bundle(bundle).manifest["scores"]["validation"]["recall_at_5"]
    assert validation["metrics"]["recall_at_5"] == pytest.approx(score, abs=1e-12)
    assert validation["counts"]["num_ranked_items"] == 16
    other = "ranking evaluation.candidates=all; training reported those of"
    assert other not in caplog.text
    run_evaluate(tmp_path / "all", bundle=str(bundle), k=[5])
    assert other in caplog.text


def test_a_run_does_not_go_on_with_other_candidates(tiny: dict[str, Any], tmp_path: Path) -> None:
    settings = tiny | COLD | {"trainer.epochs": 1}
    train(compose_config("train", TrainConfig, settings), tmp_path)
    settings |= {"evaluation.candidates": "all", "resume": True, "trainer.epochs": 2}
    with pytest.raises(ConfigError, match=r"evaluation\.candidates"):
        train(compose_config("train", TrainConfig, settings), tmp_path)
