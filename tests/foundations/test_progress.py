"""Progress: lines of log where there is no terminal, a bar where there is one."""

import io
import logging
import sys
import time

import pytest

from recsys.foundations import Progress


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_a_line_every_ten_seconds_with_rate_and_time_left(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Progress("epoch 1/2", 4000, "rows") as bar:
        clock.now = 5
        bar.advance(1000)
        assert caplog.messages == []
        clock.now = 20
        bar.advance(1000, "loss 2.5000")
        clock.now = 21
        bar.advance(1000)
    assert caplog.messages == ["epoch 1/2: 2,000 of 4,000 rows, 100/s, 20 s left, loss 2.5000"]


def test_what_was_done_before_counts_as_done_but_not_in_the_rate(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Progress("epoch 1/2", 4000, "rows", done=1000) as bar:
        clock.now = 20
        bar.advance(1000)
    assert caplog.messages == ["epoch 1/2: 2,000 of 4,000 rows, 50/s, 40 s left"]


def test_a_slow_rate_keeps_its_digits(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Progress("choosing", 10, "settings") as bar:
        clock.now = 20
        bar.advance(7)
    assert caplog.messages == ["choosing: 7 of 10 settings, 0.35/s, 9 s left"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("items", 10, "items") as bar:
        time.sleep(0.7)
        bar.advance(4, "half way")
    assert "items:  40%|" in terminal.getvalue()
    assert "half way" in terminal.getvalue()


def test_work_that_ends_at_once_draws_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("items", 10, "items") as bar:
        bar.advance(10)
    assert terminal.getvalue() == ""
