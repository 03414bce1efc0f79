"""The benchmark's step trains on events, whatever reads the histories."""

from typing import Any

import pytest

from recsys.config import compose_config
from recsys.config.build_benchmark import build_step
from recsys.config.schema_benchmark import BenchmarkConfig

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
    settings = {
        "step.batch_size": 16,
        "step.num_users": 100,
        "step.num_sampled": 8,
        f"{HISTORY}.length": 6,
    }
    config = compose_config("benchmark", BenchmarkConfig, settings | history)
    take_step = build_step(config, 50)
    take_step()
    take_step()
