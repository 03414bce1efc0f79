"""Jobs in processes of their own: what they give back, and how malloc was told to behave."""

import os

import pytest

from recsys.benchmark.fresh_process import run_in_fresh_process

VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


def read_environment() -> tuple[int, dict[str, str]]:
    return os.getpid(), {name: os.environ[name] for name in VARIABLES if name in os.environ}


def test_malloc_keeps_memory_where_it_is_told_to_and_else_is_as_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MALLOC_TOP_PAD_", "1000")
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    process, kept = run_in_fresh_process(read_environment, keep_memory=True)
    other, default = run_in_fresh_process(read_environment, keep_memory=False)
    assert len({process, other, os.getpid()}) == 3
    assert set(kept) == {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"}
    assert int(kept["MALLOC_TRIM_THRESHOLD_"]) > 2**36  # no block is as large
    assert default == {}
    assert read_environment()[1] == {"MALLOC_TOP_PAD_": "1000"}  # as before
