"""A throw-away stage with its own settings, run as a person would: in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STAGE = """
import logging, os, sys, time
from dataclasses import dataclass, field
from pathlib import Path
from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, OmegaConf
from recsys.cli import as_written, job_folder, stage, sweep_name, user_folder
from recsys.foundations import ConfigError, DataError

@dataclass
class Loss:
    temperature: float = MISSING

@dataclass
class Sampled(Loss):
    num_sampled: int = MISSING

@dataclass
class Stage:
    loss: Loss = MISSING
    seed: int = MISSING
    data: str = MISSING
    k: list[int] = field(default_factory=lambda: [1])
    fail: str = ""
    run_dir: str = MISSING

store = ConfigStore.instance()
store.store(name="train_schema", node=Stage)
store.store(group="loss", name="sampled_schema", node=Sampled)
store.store(group="loss", name="full_schema", node=Loss)

@stage("train", config_path=str(Path(__file__).parent / "conf"))
def main(tree):
    settings = OmegaConf.to_object(tree)
    logging.getLogger("recsys.something").info("a line of ours")
    logging.getLogger("library").info("a line of a library")
    Path("data_was_read").touch()
    out = job_folder()
    if settings.fail == "where":
        print(out, user_folder(), sweep_name(), as_written("data", settings.data), os.getcwd())
    (out / "result").write_text(settings.data)
    match settings.fail:
        case "data": raise DataError("log.csv: two\\nlines.")
        case "ours": raise RuntimeError("a fault of ours")
        case "memory": raise MemoryError("Unable to allocate 9 TiB")
        case "torch memory": raise RuntimeError("CPUAllocator: can't allocate memory: x")
        case "torch size": raise RuntimeError("Storage size calculation overflowed: x")
        case "numpy size": raise ValueError("array is too big; x")
        case "disk": raise OSError(28, "No space left on device", "/full/file")
        case "seed":
            if settings.seed == 1: raise DataError("seed 1 is unlucky.")
        case "sleep":
            try:
                print("ready", flush=True)
                time.sleep(60)
            finally:
                print("closed", flush=True)

if __name__ == "__main__":
    main()
"""
PRIMARY = """
defaults: [train_schema, {loss: sampled}, _self_]
seed: 0
data: ???
run_dir: out
hydra:
  job: {chdir: false}
  run: {dir: "${run_dir}"}
  sweep: {dir: "${run_dir}", subdir: "${hydra.job.num}"}
"""

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the stage `app.py` and its settings."""
    (tmp_path / "conf" / "loss").mkdir(parents=True)
    (tmp_path / "app.py").write_text(STAGE)
    (tmp_path / "conf" / "train.yaml").write_text(PRIMARY)
    sampled = "defaults: [sampled_schema, _self_]\ntemperature: 0.05\nnum_sampled: 100\n"
    (tmp_path / "conf" / "loss" / "sampled.yaml").write_text(sampled)
    full = "defaults: [full_schema, _self_]\ntemperature: 0.05\n"
    (tmp_path / "conf" / "loss" / "full.yaml").write_text(full)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Start:
    """Give a function that starts the stage with overrides and variables."""

    def start(*overrides: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "app.py", *overrides],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_interrupts,
        )

    return start


def _heed_interrupts() -> None:
    """Let Ctrl-C reach the stage: what a shell starts in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def run(start: Start) -> Run:
    """Give a function that runs the stage to its end."""

    def run(*overrides: str, **variables: str) -> subprocess.CompletedProcess[str]:
        process = start(*overrides, **variables)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run
