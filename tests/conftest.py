"""What all tests share: golden cases from a folder, and reproducible property tests in CI."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

OWN_CASES = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Case:
    """One golden file: inputs, the values they must give, and how closely for each dtype."""

    name: str
    inputs: dict[str, Any]
    expected: dict[str, Any]
    tolerance: dict[str, dict[str, float]]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Give the dtypes that the case is to be run in."""
        return tuple(self.tolerance)

    def check(self, what: str, actual: Any, expected: Any, dtype: str) -> None:
        """Assert ``|actual - expected| <= atol + rtol * |expected|`` and equal shapes."""
        limits = self.tolerance[dtype]
        got, want = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        assert got.shape == want.shape, f"{self.name}: {what} has shape {got.shape}"
        excess = np.abs(got - want) - (limits["atol"] + limits["rtol"] * np.abs(want))
        assert (excess <= 0).all(), f"{self.name}: {what} in {dtype}: {got} instead of {want}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let another folder of golden cases stand in for the project's own."""
    parser.addoption(
        "--golden-dir", type=Path, default=OWN_CASES, help="folder of golden cases (*.json)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a folder without cases, over which every golden test would pass; hear Ctrl-C.

    A shell has what it runs in the background ignore SIGINT, which tests send to themselves.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = config.getoption("--golden-dir")
    if not list(folder.glob("*.json")):
        raise pytest.UsageError(f"--golden-dir must be a folder with *.json cases, got {folder}")


@pytest.fixture(scope="session")
def golden_cases(request: pytest.FixtureRequest) -> Callable[[str], list[Case]]:
    """Give a function from a file-name prefix to the cases of that name.

    The project's own folder must hold some; another folder may hold other kinds only, and then the
    test is skipped with the reason.
    """
    folder: Path = request.config.getoption("--golden-dir")

    def read(prefix: str) -> list[Case]:
        cases = [_read_case(path) for path in sorted(folder.glob(f"{prefix}*.json"))]
        if not cases and folder.resolve() != OWN_CASES:
            pytest.skip(f"{folder} holds no case {prefix}*")
        assert cases, f"{folder} holds no case {prefix}*"
        return cases

    return read


def _read_case(path: Path) -> Case:
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Case(fields["case"], fields["inputs"], fields["expected"], fields["tolerance"])
