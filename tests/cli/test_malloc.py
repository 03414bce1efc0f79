"""Freed memory is kept where it should be, counted in page faults of a process of its own."""

import os
import platform
import subprocess
import sys

import pytest

from recsys.cli.malloc import keep_freed_memory
from recsys.foundations import ConfigError

ROUNDS, CHUNK = 20, 24 << 20
SCRIPT = f"""
import resource
from recsys.cli.malloc import keep_freed_memory
kept = keep_freed_memory()
def use():
    chunks = [b"%d" % i * {CHUNK} for i in range(4)]
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    use()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**variables: str) -> tuple[str, int]:
    """Whether memory was kept, and the page faults of 20 rounds of 4 chunks of 24 MiB."""
    clean = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    clean.pop("LD_PRELOAD", None)
    run = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(run, env=clean | variables, capture_output=True, text=True, check=True)
    kept, count = done.stdout.split()
    return kept, int(count)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_chunks_are_taken_from_the_system_once_unless_that_is_turned_off() -> None:
    # Every round touches 4 * 24 MiB / 4 KiB = 24,576 pages; what is kept is touched before.
    kept, count = faults()
    assert kept == "True"
    assert count < 24_576
    kept, count = faults(RECSYS_MALLOC="system")
    assert kept == "False"
    assert count > ROUNDS * 12_288
    assert faults(MALLOC_TRIM_THRESHOLD_="131072")[0] == "False"  # what the user set stays


def test_a_variable_of_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECSYS_MALLOC", "jemalloc")
    refusal = r"RECSYS_MALLOC .* must be keep or system, got 'jemalloc'"
    with pytest.raises(ConfigError, match=refusal):
        keep_freed_memory()
