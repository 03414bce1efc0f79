"""Batches made ahead in a thread: the same ones, the same errors, and no thread left behind."""

import gc
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from recsys.data import (
    BatchStream,
    EventBatches,
    Events,
    FeatureSchema,
    FeatureTable,
    PrefetchedBatches,
)
from recsys.foundations import ArgumentError, DataError


def make_batches(num_rows: int = 60) -> EventBatches:
    users, context = np.arange(num_rows) // 10, FeatureTable.missing(FeatureSchema(), num_rows)
    events = Events(users, np.arange(num_rows), np.arange(num_rows), None, context)
    return EventBatches(
        events,
        clock="order",
        ties="include",
        history_length=3,
        batch_size=8,
        drop_last=False,
        seed=0,
    )


class Probed:
    """A source that counts what was asked of it, and may fail or wait at a batch."""

    def __init__(self, *, at: int = -1, then: Callable[[], None] = lambda: None) -> None:
        self.num_made, self.is_closed = 0, False
        self._at, self._then, self._batches = at, then, make_batches()
        self.num_rows, self.count_batches = self._batches.num_rows, self._batches.count_batches

    def epoch(self, epoch: int, *, first_batch: int = 0) -> BatchStream:
        try:
            for batch in self._batches.epoch(epoch, first_batch=first_batch):
                if self.num_made == self._at:
                    self._then()
                self.num_made += 1
                yield batch
        finally:
            self.is_closed = True


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "batches"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("depth", [1, 2, 50])
@pytest.mark.parametrize("first", [0, 3, 8])
def test_the_batches_are_those_of_the_source(depth: int, first: int) -> None:
    source = make_batches()
    ahead = PrefetchedBatches(source, depth=depth)
    assert (ahead.num_rows, ahead.count_batches(2)) == (60, 16)
    made = list(ahead.epoch(1, first_batch=first))
    wanted = list(source.epoch(1, first_batch=first))
    assert [batch.positives.tolist() for batch in made] == [
        batch.positives.tolist() for batch in wanted
    ]
    assert [batch.histories.tolist() for batch in made] == [
        batch.histories.tolist() for batch in wanted
    ]
    assert threads() == []


def test_no_more_batches_are_made_ahead_than_there_are_places() -> None:
    source = Probed()
    stream = PrefetchedBatches(source, depth=2).epoch(0)
    next(stream)
    wait_until(lambda: source.num_made == 3)  # the one that was taken, and two more
    time.sleep(0.02)
    assert source.num_made == 3
    stream.close()


def test_a_stream_that_is_closed_or_let_go_leaves_no_thread() -> None:
    for leave in ("close", "let go"):
        source = Probed()
        stream = PrefetchedBatches(source, depth=3).epoch(0)
        next(stream)
        assert threads() == ["batches"]
        if leave == "close":
            stream.close()
        del stream
        gc.collect()
        assert threads() == []
        assert source.is_closed


def test_an_error_of_the_source_comes_up_where_its_batch_was_asked_for() -> None:
    def fail() -> None:
        raise DataError("The log has a hole.")

    stream = PrefetchedBatches(Probed(at=2, then=fail), depth=2).epoch(0)
    assert len(next(stream).users) == len(next(stream).users) == 8
    with pytest.raises(DataError, match="The log has a hole"):
        next(stream)
    assert threads() == []


def test_an_interrupt_reaches_who_waits_for_a_batch() -> None:
    def interrupt() -> None:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.05)

    stream = PrefetchedBatches(Probed(at=1, then=interrupt), depth=1).epoch(0)
    next(stream)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert threads() == []


def test_an_interrupt_at_any_moment_leaves_nothing_that_waits() -> None:
    interrupted = [True]

    def take_a_batch(moment: int) -> None:
        """Take the second batch, and raise before the given line that runs, from 0."""
        before, moments = sys.gettrace(), itertools.count()

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            if event == "line" and next(moments) == moment:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        stream = PrefetchedBatches(make_batches(), depth=1).epoch(0)
        next(stream)
        sys.settrace(trace)
        try:
            next(stream)
            interrupted.append(False)
        except KeyboardInterrupt:
            interrupted.append(True)
        finally:
            sys.settrace(before)
            stream.close()

    while interrupted[-1]:
        taker = threading.Thread(target=take_a_batch, args=(len(interrupted) - 1,), daemon=True)
        taker.start()
        taker.join(timeout=10)
        assert not taker.is_alive()
        assert threads() == []
    assert len(interrupted) > 5


def test_refuses_a_depth_of_zero() -> None:
    with pytest.raises(ArgumentError, match="`depth` must be above 0, got 0"):
        PrefetchedBatches(make_batches(), depth=0)
