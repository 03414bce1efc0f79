"""The stage `evaluate`: a bundle on its data set, lists against the truth."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.prepare import prepare
from recsys.bundle import read_bundle
from recsys.config import (
    PrepareConfig,
    compose_config,
)
from recsys.foundations import ConfigError


def test_evaluate_takes_other_list_lengths_and_the_validation_part(
    trained: Any, tmp_path: Path, run_evaluate: Any
) -> None:
    report = run_evaluate(
        tmp_path, bundle=str(trained.bundle), k=[2, 7], **{"evaluation.part": "validation"}
    )
    assert report["k"] == [2, 7]
    assert report["about"]["part"] == "validation"
    assert report["about"]["history"] == "training"


def test_the_validation_score_of_the_bundle_is_that_of_evaluate(
    trained: Any, tmp_path: Path, run_evaluate: Any
) -> None:
    # The best epoch's weights were validated in training, on the same users.
    report = run_evaluate(
        tmp_path, bundle=str(trained.bundle), k=[10], **{"evaluation.part": "validation"}
    )
    score = read_bundle(trained.bundle).manifest["scores"]["validation"]["recall_at_10"]
    assert report["metrics"]["recall_at_10"] == pytest.approx(score, abs=1e-12)


def test_evaluate_refuses_another_dataset(
    trained: Any, tiny: dict[str, Any], tmp_path: Path, run_evaluate: Any
) -> None:
    given = {key: value for key, value in tiny.items() if key.startswith("dataset")}
    config = compose_config("prepare", PrepareConfig, given | {"dataset.seed": 7})
    other = prepare(config, tmp_path / "other")
    with pytest.raises(ConfigError, match=r"was not trained on dataset_dir=.*fingerprints differ"):
        run_evaluate(tmp_path, bundle=str(trained.bundle), dataset_dir=str(other))


def test_evaluate_of_lists_is_worked_by_hand(tmp_path: Path, run_evaluate: Any) -> None:
    # u1 has 2 relevant items, of which the first place holds one: recall@1 1/2, @2 1/2, @3 2/2.
    # u2 has 1, which stands at no place: 0. Means: 1/4, 1/4, 1/2.
    (tmp_path / "ranked.csv").write_text(
        "user_id,item_id,rank\nu1,a,1\nu1,x,2\nu1,b,3\nu2,a,1\nu2,b,2\n"
    )
    (tmp_path / "truth.csv").write_text("user_id,item_id\nu1,a\nu1,b\nu2,c\n")
    report = run_evaluate(
        tmp_path / "run",
        ranked=str(tmp_path / "ranked.csv"),
        truth=str(tmp_path / "truth.csv"),
        k=[1, 2, 3],
    )
    metrics = report["metrics"]
    assert [metrics[f"recall_at_{k}"] for k in (1, 2, 3)] == [0.25, 0.25, 0.5]
