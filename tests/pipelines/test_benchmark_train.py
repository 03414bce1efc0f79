"""The benchmark of whole trainings in tiny sizes: its structure, never its times."""

import importlib.util
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.benchmark import benchmark
from recsys.benchmark.train import HISTORY, NAIVE, PEER, PROFILE, TO_RECALL
from recsys.config import BenchmarkConfig, build_train_benchmark, compose_config
from recsys.data import make_synthetic
from recsys.foundations import ConfigError

TINY = {
    "name": "train",
    "threads": 1,
    "rounds": 1,
    "train.num_users": 80,
    "train.num_items": 40,
    "train.num_interactions": 2000,
    "train.batch_size": 256,
    "train.num_sampled": 20,
    "train.naive_steps": 2,
    "train.embedding_dim": 8,
    "train.profile_dim": 8,
    "train.profile_epochs": 4,
    "train.profile_learning_rate": 0.05,
    "train.k": 5,
    "train.peer_factors": 2,
    "train.peer_iterations": 1,
}


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Do in this process what is done in one of its own, which takes seconds to start."""
    done: list[Any] = []

    def run_here(job: Any) -> int:
        job()
        done.append(job)
        return 7_000_000

    monkeypatch.setattr(build_train_benchmark, "process_peak", run_here)
    return done


def run_stage(folder: Path, **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = {name.replace("__", "."): value for name, value in settings.items()}
    cfg = compose_config("benchmark", BenchmarkConfig, TINY | keys)
    benchmark(cfg, folder)
    rates = json.loads((folder / "benchmark.json").read_text())["results"]["train"]
    recall: dict[str, Any] = json.loads((folder / "train.json").read_text())
    return rates, recall


@pytest.mark.skipif(importlib.util.find_spec("implicit") is None, reason="needs implicit")
def test_both_towers_are_trained_beside_the_naive_loop_and_the_peer(
    tmp_path: Path, no_processes: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rates, recall = run_stage(tmp_path)
    measured = rates["measurements"]
    # Of at most 2,000 pairs the last two of each user are held out, then a fifth of the users.
    assert 0 < measured[HISTORY]["units"] <= 2000 - 2 * 80
    assert measured[NAIVE]["units"] == 2 * 256
    pairs = measured[HISTORY]["units"] + 2 * 80
    profiles = [PROFILE.format(users) for users in (128, 1024)]
    for name in profiles:
        assert measured[name]["units"] == pytest.approx(0.8 * pairs, rel=0.1)
    assert len(recall["points"]) == 4
    assert max(point["recall"] for point in recall["points"]) > 5 / 40  # chance, of all items
    assert recall["target"] > 0
    assert (TO_RECALL in measured) == (recall["reached"] is not None)
    others = [name for name in measured if name not in profiles]
    assert all(measured[name]["peak_bytes"] == 7_000_000 for name in others)
    assert len(no_processes) == len(others)
    assert {"train_rates.png", "train_recall.png"} <= {path.name for path in tmp_path.iterdir()}
    out = capsys.readouterr().out
    assert PEER in out
    assert "implicit's recall@5 of" in out


def test_without_the_peer_a_log_of_the_users_own_is_trained_on_and_cut_at_the_rating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    missing = "it needs implicit: pip install 'recsys-retrieval[peers]'"
    monkeypatch.setattr(build_train_benchmark, "peer_is_missing", lambda: missing)
    caplog.set_level(logging.WARNING)
    made = make_synthetic(num_users=60, num_items=30, num_interactions=1500, seed=0, num_clusters=3)
    log = made.interactions.append_column("rating", pa.array([5, 1, 4] * 500))
    file = tmp_path / "log.parquet"
    pq.write_table(log, file)
    rates, recall = run_stage(tmp_path, train__interactions=str(file), train__min_rating=4)
    measured = rates["measurements"]
    profiles = [PROFILE.format(users) for users in (128, 1024)]
    assert set(measured) == {HISTORY, NAIVE, *profiles}
    assert recall["target"] is None
    assert f"implicit's iALS is left out: {missing}" in caplog.messages
    pairs = ["user_id", "item_id"]
    num_pairs = log.group_by(pairs).aggregate([]).num_rows
    assert measured[HISTORY]["units"] == num_pairs - 2 * 60  # the last two of each are held out
    liked = log.filter(pc.field("rating") >= 4).group_by(pairs).aggregate([]).num_rows
    for name in profiles:
        assert measured[name]["units"] == pytest.approx(0.8 * liked, rel=0.1)  # a fifth is held out


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("train.num_sampled", 0, r"train\.num_sampled must be at least 1"),
        ("train.peer_alpha", 0.0, r"train\.peer_alpha must be above 0"),
        ("train.profile_dropout", 1.0, r"train\.profile_dropout must be at least 0 and below 1"),
        ("train.profile_learning_rate", -1.0, r"train\.profile_learning_rate must be above 0"),
    ],
)
def test_refuses_impossible_settings_by_name(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compose_config("benchmark", BenchmarkConfig, {key: value})
