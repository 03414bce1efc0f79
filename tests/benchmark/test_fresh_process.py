"""Jobs in processes of their own: what they give back, and how malloc was told to behave."""

import multiprocessing
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

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


def interrupt_oneself(started: Path) -> str:
    os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C, which every process of the terminal gets
    started.touch()
    time.sleep(0.05)
    return "went on"


def wait_long(started: Path) -> None:
    started.touch()
    time.sleep(60)


def test_an_interrupt_is_left_to_the_process_that_started_the_job(tmp_path: Path) -> None:
    job = partial(interrupt_oneself, tmp_path / "started")
    assert run_in_fresh_process(job, keep_memory=False) == "went on"


def test_an_interrupt_ends_the_job_at_once(tmp_path: Path) -> None:
    started = tmp_path / "started"

    def interrupt() -> None:
        while not started.exists():
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_in_fresh_process(partial(wait_long, started), keep_memory=False)
    assert multiprocessing.active_children() == []
