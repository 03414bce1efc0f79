"""What is free by the system's own account, within the limit of a container."""

from pathlib import Path

import pytest

from recsys.foundations import available_memory

STATISTICS = "anon 7\nactive_file 300000\ninactive_file 200000\n"
MODULE = "recsys.foundations.machine_memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 3000 * 1024),
        ({"memory.max": "max", "memory.current": "5"}, 3000 * 1024),
        ({"memory.max": "2000000", "memory.current": "500000"}, 1_500_000),
        ({"memory.max": "1000", "memory.current": "2000"}, 0),
        ({"memory.max": "90000000"}, 3000 * 1024),
        # Of 500,000 bytes in use 200,000 are files that need not stay.
        (
            {"memory.max": "2000000", "memory.current": "500000", "memory.stat": STATISTICS},
            1_700_000,
        ),
        ({"memory.max": "1000", "memory.current": "900", "memory.stat": STATISTICS}, 1000),
        (
            {
                "memory/memory.limit_in_bytes": "2000000\n",
                "memory/memory.usage_in_bytes": "500000\n",
                "memory/memory.stat": "inactive_file 7\ntotal_inactive_file 300000\n",
            },
            1_800_000,
        ),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 3000 * 1024),  # no limit
    ],
)
def test_the_least_of_the_machine_and_the_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 3000 kB\n")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(f"{MODULE}._MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(f"{MODULE}.CGROUP", tmp_path)
    assert available_memory() == expected


def test_a_system_that_does_not_tell_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}._MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(f"{MODULE}.CGROUP", tmp_path)
    assert available_memory() > 0
