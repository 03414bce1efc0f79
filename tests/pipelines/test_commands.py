"""The command as people run it: from any folder, with paths of all kinds, their own settings."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
COMMAND = [sys.executable, "-c", "import sys; from recsys.cli import main; sys.exit(main())"]
MODULE = [sys.executable, "-m", "recsys.pipelines.train"]
SMALL = [
    *("dataset=table", "split=leave_last_out", "model.embedding_dim=8", "loss.num_sampled=16"),
    *("trainer.epochs=1", "trainer.batch_size=64", "evaluation.k=[5]", "threads=1"),
    *("evaluation.num_bootstrap=10", "tracking=none"),
]

Start = Callable[..., subprocess.Popen[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def start(command: list[str], *arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, *arguments],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end, which must be a good one; give what stands on stdout."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def run(*arguments: str, cwd: Path) -> str:
    return finish(start(COMMAND, *arguments, cwd=cwd))


def refuse(*arguments: str, cwd: Path) -> str:
    """Run what must be refused; give its one line on stderr."""
    process = start(COMMAND, *arguments, cwd=cwd)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith("recsys: error: ")]
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a folder, with a blank in its name, of a log and a catalogue."""
    folder = tmp_path / "my project"
    (folder / "data").mkdir(parents=True)
    for name in ("interactions.csv", "catalog.csv"):
        shutil.copy(CASES / "B18" / name, folder / "data" / name)
    return folder


def tree_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_the_settings_are_the_same_from_every_folder_and_a_foreign_conf_is_not_read(
    tmp_path: Path,
) -> None:
    empty, foreign = tmp_path / "empty", tmp_path / "foreign"
    empty.mkdir()
    (foreign / "conf" / "trainer").mkdir(parents=True)
    for name in ("config.yaml", "train.yaml", "trainer/default.yaml"):
        (foreign / "conf" / name).write_text("seed: 99\nepochs: 99\n")
    arguments = ["--cfg", "job", "run_dir=x"]
    if Path(COMMAND[0]).name.startswith("python"):
        arguments.insert(0, "train")
    commands = [(COMMAND, arguments, folder) for folder in (empty, foreign, Path("/"))]
    commands.append((MODULE, arguments[1:], foreign))
    processes = [start(command, *rest, cwd=folder) for command, rest, folder in commands]
    printed = [finish(process) for process in processes]
    assert len(set(printed)) == 1
    settings = yaml.safe_load(printed[0])
    assert (settings["seed"], settings["trainer"]["epochs"]) == (0, 12)
    assert tree_of(empty) == set()


def test_settings_of_the_user_are_taken_from_a_folder_that_is_named(tmp_path: Path) -> None:
    experiment = tmp_path / "mine" / "experiment"
    experiment.mkdir(parents=True)
    (experiment / "shop.yaml").write_text(
        "# @package _global_\n"
        "defaults: [override /dataset: synthetic, override /loss: in_batch, _self_]\n"
        "trainer: {epochs: 7}\n"
    )
    arguments = ["--config-dir", "mine", "experiment=shop", "seed=5", "--cfg", "job"]
    settings = yaml.safe_load(run("train", *arguments, cwd=tmp_path))
    assert (settings["trainer"]["epochs"], settings["seed"]) == (7, 5)
    assert settings["dataset"]["name"] == "synthetic"


def test_relative_paths_start_where_the_user_stands(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = tree_of(project)
    run(
        *("train", "dataset.interactions=../my project/data/interactions.csv", *SMALL),
        *("dataset.items=../my project/data/catalog.csv", "run_dir=runs/a b"),
        cwd=elsewhere,
    )
    assert tree_of(project) == before
    assert {path.name for path in elsewhere.iterdir()} == {"runs", "data"}
    moved = tmp_path / "moved"
    shutil.move(elsewhere / "runs" / "a b", moved)
    shutil.rmtree(elsewhere)
    shutil.rmtree(project)
    run("recommend", "bundle=../moved/bundle", "output=top.parquet", "k=3", cwd=moved)
    assert len(pd.read_parquet(moved / "top.parquet")) == 60 * 3


def test_a_path_that_leads_nowhere_is_named_whole_and_nothing_is_written(
    project: Path, tmp_path: Path
) -> None:
    before = tree_of(tmp_path)
    arguments = ["dataset.interactions=../data/none.csv", *SMALL, "run_dir=run"]
    line = refuse("train", *arguments, cwd=project / "data")
    assert f"{project}/data/none.csv" in line
    assert "does not exist" in line
    assert tree_of(tmp_path) == before


@pytest.mark.slow
def test_a_home_folder_is_expanded(project: Path, tmp_path: Path) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    arguments = ["prepare", "dataset.interactions='~/my project/data/interactions.csv'"]
    arguments += ["dataset=table", "dataset_dir='~/prepared'", "run_dir='~/run'"]
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "prepared" / "manifest.json").is_file()
    assert not (project / "~").exists()


@pytest.mark.slow
@pytest.mark.parametrize("chdir", ["false", "true"])
def test_a_sweep_reads_and_writes_where_the_user_stands(project: Path, chdir: str) -> None:
    settings = [setting for setting in SMALL if setting != "tracking=none"]
    run(
        *("train", "--multirun", "dataset.interactions=data/interactions.csv", *settings),
        *("experiment=estimator/refined,[history,estimator/uniform]", "run_dir=sweep"),
        f"hydra.job.chdir={chdir}",
        cwd=project,
    )
    tree = tree_of(project)
    assert {"sweep/0/bundle/manifest.json", "sweep/1/bundle/manifest.json"} <= tree
    once = [path for path in tree if path.endswith(("mlflow.db", "/mlruns", "/outputs"))]
    assert once == ["mlflow.db"]
    assert "mlruns" in tree
    prepared = [path for path in tree if path.startswith("data/prepared/table-")]
    assert len({path.split("/")[2] for path in prepared}) == 1  # both jobs share the data set
    with contextlib.closing(sqlite3.connect(project / "mlflow.db")) as store:
        statuses = store.execute("SELECT status FROM runs").fetchall()
        children = store.execute("SELECT 1 FROM tags WHERE key = 'mlflow.parentRunId'").fetchall()
        named = store.execute("SELECT value FROM params WHERE key = 'experiment'").fetchall()
    assert statuses == [("FINISHED",)] * 3  # the sweep and its jobs
    assert len(children) == 2
    assert sorted(named) == [("estimator/refined",), ("history,estimator/uniform",)]


@pytest.mark.slow
def test_three_sweeps_started_at_once_have_folders_of_their_own(project: Path) -> None:
    arguments = ["train", "dataset.interactions=data/interactions.csv", *SMALL]
    processes = [start(COMMAND, *arguments, cwd=project) for _ in range(3)]
    for process in processes:
        finish(process)
    folders = list((project / "outputs" / "train").iterdir())
    assert len(folders) == 3
    assert all((folder / "bundle" / "manifest.json").is_file() for folder in folders)


@pytest.mark.slow
def test_a_run_stopped_by_sigterm_goes_on_to_the_bytes_of_one_that_was_not(
    project: Path, tmp_path: Path
) -> None:
    log = ["train", "dataset.interactions=data/interactions.csv", *SMALL]
    longer = ["trainer.epochs=60", "trainer.patience=0", "trainer.checkpoint_steps=4"]
    run(*log, *longer, "run_dir=whole", cwd=project)
    stopped = start(COMMAND, *log, *longer, "run_dir=stopped", cwd=project)
    assert stopped.stderr is not None
    for line in stopped.stderr:
        if line.startswith("epoch 5:"):
            break
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 143
    assert not (project / "stopped" / "bundle").exists()
    run(*log, *longer, "run_dir=stopped", "resume=true", cwd=project)
    identities = [
        yaml.safe_load((project / name / "bundle" / "manifest.json").read_text())["bundle_id"]
        for name in ("whole", "stopped")
    ]
    assert identities[0] == identities[1]
    line = refuse(
        *(*log, *longer, "run_dir=stopped", "resume=true", "model.embedding_dim=16"), cwd=project
    )
    assert "model.embedding_dim is 16" in line
    assert "trained with 8" in line
