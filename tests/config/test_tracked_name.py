"""The name of a tracked run: its folder, and in a sweep what was chosen for the job."""

from pathlib import Path
from typing import Any

import pytest

from recsys.config import TrainConfig, build, compose_config
from recsys.tracking import null_tracker


@pytest.mark.parametrize(
    ("sweep", "experiment", "run_name", "name"),
    [
        (None, "estimator/bpr", None, "compared/1"),
        ("compared", "estimator/bpr", None, "compared/1 estimator/bpr"),
        ("compared", None, None, "compared/1"),
        ("compared", "estimator/bpr", "mine", "mine"),
    ],
)
def test_a_job_of_a_sweep_is_named_after_its_folder_and_its_experiment(
    monkeypatch: pytest.MonkeyPatch,
    sweep: str | None,
    experiment: str | None,
    run_name: str | None,
    name: str,
) -> None:
    names: list[str] = []

    def tracker(uri: str, group: str, run: str, **_: Any) -> Any:
        names.append(run)
        return null_tracker()

    monkeypatch.setattr(build, "mlflow_tracker", tracker)
    config = compose_config("train", TrainConfig, {"tracking.run_name": run_name})
    folder = Path("/somewhere/compared/1")
    build.build_tracker(config.tracking, folder, sweep, experiment=experiment)
    assert names == [name]
