"""The command: its help, its version, its stages."""

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import recsys
from recsys.cli import main

FAKE = """
import sys
from pathlib import Path
from recsys.foundations import MissingExtraError

def main():
    Path(sys.argv[-1]).write_text(" ".join(sys.argv))
    if "stop" in sys.argv:
        raise SystemExit(2)
    if "extra" in sys.argv:
        raise MissingExtraError("Serving needs pip install 'recsys-retrieval[serve]'.")
"""


@pytest.fixture
def fake_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stage `diagnose` among the pipelines and take `benchmark` out."""
    module = ModuleType("recsys.pipelines.diagnose")
    module.__spec__ = ModuleSpec(module.__name__, None)
    exec(FAKE, module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "recsys.pipelines.benchmark", None)
    return tmp_path


def test_help_lists_the_stages_that_are_installed(
    fake_stage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert "diagnose" in listed
    assert "benchmark" not in listed
    assert all(find_spec(f"recsys.pipelines.{name}") for name in listed)


def test_no_command_shows_the_help_and_is_an_error(
    fake_stage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert "usage: recsys COMMAND" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"recsys {recsys.__version__}\n"


def test_a_stage_gets_its_overrides(fake_stage: Path) -> None:
    before = sys.argv
    assert main(["diagnose", "a=1", str(fake_stage / "called")]) == 0
    assert (fake_stage / "called").read_text() == f"recsys diagnose a=1 {fake_stage}/called"
    assert sys.argv is before


def test_the_status_of_a_stage_is_the_commands(fake_stage: Path) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["diagnose", "stop", str(fake_stage / "called")])
    assert leaving.value.code == 2


def test_an_error_of_a_stage_is_one_line(
    fake_stage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", "extra", str(fake_stage / "called")]) == 2
    words = "recsys: error: Serving needs pip install 'recsys-retrieval[serve]'.\n"
    assert capsys.readouterr().err == words


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("diagnoze", "'diagnoze' is not a command; did you mean diagnose?"),
        ("xyz", "'xyz' is not a command; there are "),
        ("benchmark", "'benchmark' is not a command; "),
    ],
)
def test_a_command_that_is_none_is_refused_with_the_nearest(
    fake_stage: Path, typed: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"recsys: error: {words}")
    assert err.count("\n") == 1


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
from recsys.cli import main
main(["--help"])
heavy = {"torch", "pandas", "pyarrow", "numpy", "mlflow", "hydra", "faiss"} & set(sys.modules)
print(sorted(heavy))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.splitlines()[-1] == "[]"


def test_openmp_is_told_to_wait_quietly_unless_the_user_said_otherwise(
    fake_stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    main(["diagnose", str(fake_stage / "called")])
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert os.environ["GOMP_SPINCOUNT"] == "7"
