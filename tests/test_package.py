"""The package: every folder of code is listed, every settings file travels in the wheel."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import recsys

ROOT = Path(__file__).parents[1]
FOLDERS = {"recsys.conf": ROOT / "conf", "recsys.pipelines": ROOT / "pipelines"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def folders_of_code() -> set[str]:
    """Name every folder that holds a Python file, as the package that it becomes."""
    inside = {
        ".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "recsys").rglob("*.py")
    }
    return inside | FOLDERS.keys()


def test_the_list_of_packages_is_that_of_the_folders(project: dict[str, Any]) -> None:
    packages = project["tool"]["setuptools"]["packages"]
    found = folders_of_code()
    assert len(found) >= 18
    assert sorted(packages) == sorted(found)
    assert packages == sorted(packages)
    for name in packages:
        folder = FOLDERS.get(name, ROOT.joinpath(*name.split(".")))
        assert (folder / "__init__.py").is_file(), name


def test_conf_and_pipelines_stand_at_the_top_and_install_inside(project: dict[str, Any]) -> None:
    setuptools = project["tool"]["setuptools"]
    assert setuptools["package-dir"] == {name: folder.name for name, folder in FOLDERS.items()}
    assert setuptools["package-data"] == {"recsys": ["py.typed"], "recsys.conf": ["**/*.yaml"]}
    assert (ROOT / "recsys" / "py.typed").is_file()


def test_the_version_stands_in_two_places_alike(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == recsys.__version__


def test_every_dependency_is_pinned_by_the_constraints(project: dict[str, Any]) -> None:
    def key(requirement: str) -> str:
        name = re.match(r"[\w.-]+", requirement)
        assert name, requirement
        return re.sub(r"[-_.]+", "-", name[0]).lower()

    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {key(line): line for line in lines if line and not line.startswith("#")}
    assert all("==" in line for line in pinned.values())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *(one for extra in extras for one in extra)]
    asked = {key(one) for one in wanted} - {"recsys-retrieval"}
    assert len(asked) > 20
    assert asked - pinned.keys() == set()


def test_every_module_stays_below_the_limits_of_the_house() -> None:
    # The linter holds functions to their size; this holds files.
    files = [*(ROOT / "recsys").rglob("*.py"), *(ROOT / "pipelines").glob("*.py")]
    assert len(files) > 120
    too_long = [file for file in files if len(file.read_text().splitlines()) > 400]
    assert too_long == []
    forbidden = {"utils.py", "helpers.py", "common.py", "base.py"}
    assert not [file for file in files if file.name in forbidden]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of what it is made of, without the network."""
    source = tmp_path_factory.mktemp("source")
    for name in ("recsys", "conf", "pipelines"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, *command, "--quiet", "--wheel-dir", "out", "."],
        cwd=source,
        capture_output=True,
        check=True,
    )
    [wheel] = (source / "out").glob("*.whl")
    return wheel


def test_the_wheel_holds_every_module_and_every_settings_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    settings = {f"recsys/{file.relative_to(ROOT)}" for file in (ROOT / "conf").rglob("*.yaml")}
    modules = {f"{file.relative_to(ROOT)}" for file in (ROOT / "recsys").rglob("*.py")}
    modules |= {f"recsys/pipelines/{file.name}" for file in (ROOT / "pipelines").glob("*.py")}
    assert len(settings) > 40
    assert len(modules) > 120
    assert (settings | modules | {"recsys/py.typed", "recsys/conf/__init__.py"}) - names == set()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"recsys"}


def test_the_wheel_works_in_an_environment_of_its_own_from_another_folder(
    wheel: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "env"
    venv.create(environment, with_pip=False)
    [site] = environment.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    # The libraries are those of this environment, after the wheel's own; the checkout, which an
    # editable installation would put there by a hook, is not.
    libraries = Path(yaml.__file__).parents[1]
    (site / "libraries.pth").write_text(f"{libraries}\n")
    python = str(environment / "bin" / "python")
    where = tmp_path / "elsewhere"
    where.mkdir()
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [python, *arguments], cwd=where, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call = "import sys; from recsys.cli import main; sys.exit(main())"
    call += f" if {str(site)!r} in __import__('recsys.conf').conf.__file__ else 'another recsys'"
    settings = yaml.safe_load(run("-c", call, "train", "--cfg", "job"))
    assert settings["trainer"]["epochs"] >= 1
