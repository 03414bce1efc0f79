"""The benchmark's step trains on events, whatever reads the histories."""

from typing import Any

import pytest

from recsys.benchmark import StepSize, make_step_batches
from recsys.config import compose_config
from recsys.config.build_benchmark import run_benchmarks
from recsys.config.build_step_benchmark import build_steps
from recsys.config.schema_benchmark import BenchmarkConfig
from recsys.foundations import ConfigError

HISTORY = "model.user_tower.history"


@pytest.mark.parametrize(
    "history",
    [
        {f"{HISTORY}.encoder": "none", "model.user_tower.use_id": True},
        {f"{HISTORY}.encoder": "attention", f"{HISTORY}.num_interests": 3},
        {f"{HISTORY}.encoder": "gru", f"{HISTORY}.time_gaps": True},
        {f"{HISTORY}.encoder": "transformer"},
    ],
)
def test_a_step_of_any_encoder_runs(history: dict[str, Any]) -> None:
    settings = {"model": "two_tower", f"{HISTORY}.length": 6}
    config = compose_config("benchmark", BenchmarkConfig, settings | history)
    size = StepSize(num_items=50, num_users=100, batch_size=16, num_sampled=8, dim=12)
    batches = make_step_batches(size, history_length=6, seed=0)
    for take_step in build_steps(config, size, batches).values():
        take_step()
        take_step()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "features"}, r"model\.item_tower\.use_id must be true: .*; got false\."),
        (
            {"model": "two_tower", f"{HISTORY}.encoder": "none"},
            r"model\.user_tower\.use_id must be true, or .*",
        ),
        (
            {"model.item_tower.features": ["price"]},
            r"model\.item_tower\.features must be all or \[\]: .*; got \['price'\]\.",
        ),
    ],
)
@pytest.mark.parametrize("name", ["all", "step"])
def test_a_model_that_needs_features_is_refused_before_anything_is_measured(
    settings: dict[str, Any], words: str, name: str
) -> None:
    config = compose_config("benchmark", BenchmarkConfig, settings | {"name": name})
    with pytest.raises(ConfigError, match=words) as error:
        run_benchmarks(config)
    assert "made-up events without features" in str(error.value)


def test_what_does_not_train_a_model_takes_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "recsys.benchmark.process_use.run_in_fresh_process", lambda job, keep_memory: job()
    )
    settings = {"name": "prepare", "model": "features", "rounds": 1}
    settings |= {"prepare.rows": 200, "prepare.ids": "int"}
    outcome = run_benchmarks(compose_config("benchmark", BenchmarkConfig, settings))
    assert len(outcome.rates) == 1
