"""What is free by the system's own account, within the limit of a container."""

from pathlib import Path

import pytest

from recsys.foundations import available_memory

MODULE = "recsys.foundations.machine_memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 3000 * 1024),
        ({"memory.max": "max", "memory.current": "5"}, 3000 * 1024),
        ({"memory.max": "2000000", "memory.current": "500000"}, 1_500_000),
        ({"memory.max": "1000", "memory.current": "2000"}, 0),
        ({"memory.max": "90000000"}, 3000 * 1024),
    ],
)
def test_the_least_of_the_machine_and_the_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 3000 kB\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(f"{MODULE}._MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(f"{MODULE}._GROUP", tmp_path)
    assert available_memory() == expected


def test_a_system_that_does_not_tell_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}._MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(f"{MODULE}._GROUP", tmp_path)
    assert available_memory() > 0
