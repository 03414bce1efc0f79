"""Stages that write a bundle, killed at random moments: the old bundle stays, or the new is there.

A process that has everything imported forks one for each run, so that kills fall into the work.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recsys.bundle import read_bundle

# Reads a line of JSON for each run, kills it after so many seconds, says how it ended.
FORKS = """
import json, os, signal, sys, time
from pathlib import Path
from pipelines.compact import compact
from pipelines.index import index
from pipelines.update import update
from recsys.config import CompactConfig, ReindexConfig, UpdateConfig, compose_config

stages = {
    "compact": (compact, CompactConfig),
    "index": (index, ReindexConfig),
    "update": (update, UpdateConfig),
}
print("ready", flush=True)
for line in sys.stdin:
    stage, settings, folder, seconds = json.loads(line)
    run, schema = stages[stage]
    config = compose_config(stage, schema, settings)
    child = os.fork()
    if child == 0:
        run(config, Path(folder))
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)  # nobody has waited for it: the number is still its own
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

Run = Callable[..., int]


@pytest.fixture(scope="module")
def run_stage() -> Iterator[Run]:
    """Give a function that runs a stage in a process of its own, to its end or for some seconds."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines, stdout = process.stdin, process.stdout
    assert stdout.readline() == "ready\n"

    def run(
        stage: str, settings: dict[str, Any], folder: Path, seconds: float | None = None
    ) -> int:
        job = [stage, settings | {"threads": 1}, str(folder), seconds]
        lines.write(json.dumps(job) + "\n")
        lines.flush()
        return int(stdout.readline())

    yield run
    lines.close()
    process.wait(timeout=30)
    stdout.close()


def make_updates(bundle: Path, folder: Path) -> list[dict[str, Any]]:
    """Make two updates of a bundle."""
    ids = read_bundle(bundle).items.vocabulary.ids.to_pylist()
    updates = []
    for number in (0, 1):
        table = folder / f"new{number}.csv"
        rows = [f"{one},new {one},category1,tag-1|tag2,{number}" for one in (ids[number], "cold")]
        table.write_text("\n".join(["item_id,title,category,tags,price", *rows]) + "\n")
        removed = [ids[4 + number]]
        updates.append({"bundle": str(bundle), "items": str(table), "remove": removed})
    return updates


@pytest.mark.parametrize("num_kills", [pytest.param(2), pytest.param(17, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stage", ["update", "compact", "index"])
def test_a_kill_at_any_moment_leaves_the_old_bundle_or_the_new_one(
    trained: Any, tmp_path: Path, run_stage: Run, stage: str, num_kills: int
) -> None:
    updates = make_updates(trained.bundle, tmp_path)
    versions = updates
    if stage == "index":
        versions = [{"bundle": str(trained.bundle), "index": kind} for kind in ("hnsw", "ivf_flat")]
    elif stage == "compact":
        for number, one in enumerate(updates):
            assert run_stage("update", one, tmp_path / f"updated{number}") == 0
        versions = [{"bundle": str(tmp_path / f"updated{number}/bundle")} for number in (0, 1)]
    ids, folder, started = [], tmp_path / "run", time.monotonic()
    for one in versions:
        assert run_stage(stage, one, folder) == 0
        ids.append(read_bundle(folder / "bundle").bundle_id)
    assert ids[0] != ids[1]
    seconds = (time.monotonic() - started) / 2
    rng, now, statuses = np.random.default_rng(0), 1, []
    for _ in range(num_kills):
        statuses.append(run_stage(stage, versions[1 - now], folder, rng.uniform(0, seconds)))
        now = ids.index(read_bundle(folder / "bundle").bundle_id)
    assert set(statuses) <= {0, -signal.SIGKILL}
    assert run_stage(stage, versions[0], folder) == 0  # nothing is in the way of the next run
    assert read_bundle(folder / "bundle").bundle_id == ids[0]
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
