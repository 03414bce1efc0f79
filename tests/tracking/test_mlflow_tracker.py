"""Runs in a real SQLite store, read back with MLflow's own client."""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from recsys.foundations import ArgumentError, ConfigError, TrackingError
from recsys.tracking import MlflowTracker, NullTracker, Tracker, mlflow_tracker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one folder with a store; making its tables takes a second."""
    return tmp_path_factory.mktemp("store")


def open_tracker(folder: Path, **changes: Any) -> Tracker:
    arguments: dict[str, Any] = {
        "uri": "sqlite:///mlflow.db",
        "experiment": "tests",
        "base_dir": folder,
    }
    return mlflow_tracker(**arguments | changes)


def read_run(folder: Path, run_id: str | None) -> Any:
    from mlflow import MlflowClient

    uri = f"sqlite:///{folder / 'mlflow.db'}"
    return MlflowClient(tracking_uri=uri, registry_uri=uri).get_run(run_id)


def read_artifact(folder: Path, run_id: str | None, name: str) -> str:
    return (folder / "mlruns" / "tests" / str(run_id) / "artifacts" / name).read_text()


def in_new_process(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_run_keeps_all_it_was_told_under_legal_names(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plot = folder / "plot.png"
    plot.write_bytes(b"picture")
    bundle = folder / "bundle"
    bundle.mkdir()
    (bundle / "manifest.json").write_text("{}")
    settings = {"features": [f"column_{i:04}" for i in range(700)], "k": [1, 10], "empty": ""}
    settings |= {"nothing": None, "note": "ünïcode 🎈 [0] {x}", "uri": "http://me:secret@host"}
    with open_tracker(folder, run_name="first") as tracker:
        tracker.log_settings({"odd[0]": 1, **settings}, {"whole": settings, "path": Path("x")})
        tracker.log_metrics({"recall@10": 0.25, "recall@100": 0.5, "loss": float("nan")}, step=1)
        tracker.log_metrics({"recall@10": 0.75, "loss": float("inf")}, step=2)
        tracker.log_artifact(plot, "plots")
        tracker.log_artifact(bundle)
        tracker.log_dataset("ml-100k", "0123456789" * 6, "data/raw")

    run = read_run(folder, tracker.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "first"
    assert run.data.metrics == {"recall_at_10": 0.75, "recall_at_100": 0.5}
    params = run.data.params
    assert (params["odd_0_"], params["k"], params["empty"]) == ("1", "[1, 10]", "")
    assert (params["nothing"], params["uri"]) == ("null", "http://***@host")
    assert len(params["features"]) == 6000
    assert "whole in config.yaml: features" in caplog.text
    # One line for the two metrics steps that held an undefined loss.
    assert caplog.text.count("Not finite, so not recorded: loss.") == 1
    kept = yaml.safe_load(read_artifact(folder, tracker.run_id, "config.yaml"))
    assert kept["whole"] == settings | {"uri": "http://***@host"}
    assert kept["path"] == "x"
    assert read_artifact(folder, tracker.run_id, "plots/plot.png") == "picture"
    assert read_artifact(folder, tracker.run_id, "bundle/manifest.json") == "{}"
    [data] = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("ml-100k", ("0123456789" * 6)[:36])
    assert run.data.tags["dataset.fingerprint"] == "0123456789" * 6
    assert run.data.tags["recsys.version"]
    assert tracker.url == f"sqlite:///{folder / 'mlflow.db'}"


def test_everything_lies_beside_the_database_whatever_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with open_tracker(tmp_path / "home", experiment="Default") as tracker:
        tracker.log_settings({}, {"a": 1})
    assert list((tmp_path / "elsewhere").iterdir()) == []
    names = sorted(path.name for path in (tmp_path / "home").iterdir())
    assert [name for name in names if not name.startswith(".")] == ["mlflow.db", "mlruns"]
    [config] = (tmp_path / "home").rglob("config.yaml")
    assert str(tracker.run_id) in str(config)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("x"), "FAILED"),
        (KeyboardInterrupt(), "KILLED"),
        (SystemExit(143), "KILLED"),
        (SystemExit(2), "FAILED"),
        (SystemExit(0), "FINISHED"),
    ],
)
def test_the_status_says_how_the_run_ended(folder: Path, error: BaseException, status: str) -> None:
    tracker = open_tracker(folder)
    with contextlib.suppress(BaseException), tracker:
        raise error
    assert read_run(folder, tracker.run_id).info.status == status


def test_a_resumed_run_goes_on_and_changed_settings_are_not_fatal(folder: Path) -> None:
    with open_tracker(folder) as first:
        first.log_settings({"epochs": 2, "seed": 0}, {"epochs": 2})
        first.log_metrics({"loss": 2.0}, step=2)
    with open_tracker(folder, run_id=first.run_id) as second:
        assert read_run(folder, first.run_id).info.status == "RUNNING"
        second.log_settings({"epochs": 4, "seed": 0, "new": 1}, {"epochs": 4})
        second.log_metrics({"loss": 1.0}, step=4)
    assert second.run_id == first.run_id
    run = read_run(folder, first.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"epochs": "2", "seed": "0", "new": "1"}
    assert run.data.tags["resumed.epochs"] == "4"
    assert "resumed.seed" not in run.data.tags
    assert run.data.metrics == {"loss": 1.0}
    assert read_artifact(folder, first.run_id, "config.yaml") == "epochs: 2\n"
    assert read_artifact(folder, first.run_id, "resumed_1/config.yaml") == "epochs: 4\n"


def test_a_run_that_the_store_lost_is_replaced_by_one_that_names_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_tracker(folder, run_id="f" * 32) as tracker:
        pass
    assert tracker.run_id != "f" * 32
    assert read_run(folder, tracker.run_id).data.tags["recsys.resumed_from"] == "f" * 32
    assert f"Run {'f' * 32} cannot go on, so a new one is started." in caplog.text


def test_the_jobs_of_a_sweep_are_children_of_one_parent(folder: Path) -> None:
    with open_tracker(folder, sweep="outputs/sweep/1") as first:
        pass
    with open_tracker(folder, sweep="outputs/sweep/1") as second:
        pass
    with open_tracker(folder, sweep="outputs/sweep/2") as other:
        pass
    runs = [read_run(folder, tracker.run_id) for tracker in (first, second, other)]
    parents = [run.data.tags["mlflow.parentRunId"] for run in runs]
    assert parents[0] == parents[1] != parents[2]
    assert read_run(folder, parents[0]).info.status == "FINISHED"
    failing = open_tracker(folder, parent_run_id=parents[0])
    with contextlib.suppress(ValueError), failing:
        raise ValueError
    assert read_run(folder, failing.run_id).data.tags["mlflow.parentRunId"] == parents[0]
    assert read_run(folder, parents[0]).info.status == "FAILED"


def test_three_processes_that_start_together_on_a_new_store_all_succeed(tmp_path: Path) -> None:
    code = """
import sys, time
from recsys.tracking import mlflow_tracker
import mlflow
print("ready", flush=True)
sys.stdin.readline()
with mlflow_tracker("sqlite:///new/mlflow.db", "race", sweep="jobs") as tracker:
    tracker.log_metrics({"recall@10": 0.5}, step=1)
print(tracker.run_id)
"""
    starters = [in_new_process(code, tmp_path) for _ in range(3)]
    for process in starters:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in starters:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outcomes = [(*process.communicate(timeout=120), process.returncode) for process in starters]
    assert [(errors, code) for _, errors, code in outcomes] == [("", 0)] * 3
    runs = [read_run(tmp_path / "new", out.strip()) for out, _, _ in outcomes]
    assert [run.data.metrics for run in runs] == [{"recall_at_10": 0.5}] * 3
    assert len({run.info.experiment_id for run in runs}) == 1
    assert len({run.data.tags["mlflow.parentRunId"] for run in runs}) == 1


def test_sigterm_leaves_no_run_as_running(folder: Path) -> None:
    code = """
import time
from recsys.tracking import mlflow_tracker
with mlflow_tracker("sqlite:///mlflow.db", "tests") as tracker:
    print(tracker.run_id, flush=True)
    time.sleep(60)
"""
    process = in_new_process(code, folder)
    assert process.stdout is not None
    run_id = process.stdout.readline().strip()
    assert read_run(folder, run_id).info.status == "RUNNING"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    assert read_run(folder, run_id).info.status == "KILLED"
    process.communicate()


def test_a_handler_of_sigterm_that_is_there_already_stays(folder: Path) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        mine = signal.getsignal(signal.SIGTERM)
        with open_tracker(folder):
            assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
    with open_tracker(folder):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Give a port that refuses: it is bound but does not listen."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def test_a_server_that_is_down_stops_the_run_in_one_sentence(closed_port: int) -> None:
    start = time.monotonic()
    with pytest.raises(TrackingError) as caught:
        mlflow_tracker(f"http://me:secret@127.0.0.1:{closed_port}", "tests")
    assert time.monotonic() - start < 30
    assert str(caught.value) == (
        f"The tracking store http://***@127.0.0.1:{closed_port} does not answer: "
        "Connection refused."
    )


def test_a_server_that_is_down_costs_a_warning_where_that_is_asked_for(
    closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = mlflow_tracker(f"http://127.0.0.1:{closed_port}", "tests", on_error="warn")
    assert isinstance(tracker, NullTracker)
    assert len(caplog.records) == 1
    assert caplog.messages[0].endswith("Connection refused. The run goes on without tracking.")


@pytest.mark.slow
def test_a_server_that_accepts_and_stays_silent_is_given_up_within_30_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(TrackingError, match=r"does not answer|did not answer in 25 s"):
            mlflow_tracker(f"http://127.0.0.1:{silent.getsockname()[1]}", "tests")
        assert time.monotonic() - start < 30


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_costs_records_and_not_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
    command += ["--artifacts-destination", str(tmp_path / "files")]
    with (tmp_path / "log").open("w") as log_file:
        server = subprocess.Popen(
            command, cwd=tmp_path, stdout=log_file, stderr=log_file, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                tracker = mlflow_tracker(f"http://127.0.0.1:{port}", "tests")
                break
            except TrackingError:
                assert time.monotonic() < deadline
                time.sleep(1)
        with tracker:
            tracker.log_settings({"a": 1}, {"a": 1})
            tracker.log_metrics({"loss": 1.0}, step=1)
            assert tracker.url is not None
            assert tracker.url.startswith(f"http://127.0.0.1:{port}/#/experiments/")
            assert caplog.messages == []
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            for step in range(2, 50):
                tracker.log_metrics({"loss": 1.0 / step}, step=step)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    assert "does not answer: Connection refused. The run goes on; records wait." in caplog.text
    assert "never got: metrics, its end." in caplog.text


@pytest.mark.parametrize("uri", ["mlruns", "./runs", "file:///tmp/runs", "sqlite:///", ""])
def test_an_address_that_is_no_store_is_refused(uri: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tracking\.uri must"):
        open_tracker(tmp_path, uri=uri)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("These are not the tables you are looking for." * 50)
    with pytest.raises(TrackingError, match=r"mlflow.db cannot be used: .*not a database"):
        open_tracker(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrackingError, match=r"cannot be opened: .*file"):
        open_tracker(tmp_path, uri="sqlite:///file/below/mlflow.db")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no file")
def test_a_folder_that_takes_no_file_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match=r"x\.db cannot be opened: .*No such file"):
        open_tracker(tmp_path, uri="sqlite:////proc/x.db")


def test_an_unknown_way_with_errors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="`on_error` must be one of fail, warn, got 'ignore'"):
        open_tracker(tmp_path, on_error="ignore")


def test_mlflow_says_nothing_of_itself(
    folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tracker = open_tracker(folder, experiment="a quiet one")
    assert isinstance(tracker, MlflowTracker)
    with tracker:
        tracker.log_metrics({"loss": 1.0}, step=0)
    assert capfd.readouterr() == ("", "")
    assert caplog.messages == []


def test_opening_a_tracker_is_what_imports_mlflow(tmp_path: Path) -> None:
    code = "import sys, recsys.tracking; print('mlflow' in sys.modules)"
    out, _ = in_new_process(code, tmp_path).communicate(timeout=60)
    assert out == "False\n"
