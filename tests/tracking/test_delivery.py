"""Records during an outage: none is lost, none raises, order is kept."""

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from recsys.foundations import TrackingError
from recsys.tracking.delivery import Delivery
from recsys.tracking.store import Store, UnreachableError


class FlakyStore(Store):
    """A store that is away while `away` says so; it counts the attempts."""

    away = False
    attempts = 0

    def __init__(self) -> None:
        super().__init__(client=None, uri="http://host", experiment_id="0", lock=None)

    def call(self, function: Callable[[Any], Any], seconds: float = 25.0) -> Any:
        type(self).attempts += 1
        if type(self).away:
            raise UnreachableError("The tracking store http://host does not answer: gone.")
        return function(None)


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlakyStore, "away", False)
    monkeypatch.setattr(FlakyStore, "attempts", 0)


def test_what_an_outage_stops_arrives_in_order_once_the_store_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[int] = []

    def take(number: int, _: Any) -> None:
        got.append(number)

    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    sender = Delivery(FlakyStore())
    sender.send("a", lambda _: got.append(0))
    monkeypatch.setattr(FlakyStore, "away", True)
    with caplog.at_level(logging.WARNING):
        for number in range(1, 50):
            sender.send("b", functools.partial(take, number))
    assert got == [0]
    assert FlakyStore.attempts == 2  # the first and one in vain; then it pauses
    assert len(caplog.records) == 1
    monkeypatch.setattr(FlakyStore, "away", False)
    clock[0] = 61.0
    sender.finish("the end", lambda _: got.append(50))
    assert got == list(range(51))


def test_what_a_store_never_got_is_named_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    FlakyStore.away = True
    sender = Delivery(FlakyStore())
    sender.send("metrics", lambda _: None)
    sender.finish("its end", lambda _: None)
    assert "http://host never got: metrics, its end." in caplog.text


def test_a_record_that_is_refused_is_dropped_and_the_next_ones_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(_: Any) -> None:
        raise TrackingError("The tracking store http://host cannot be used: bad value.")

    got: list[str] = []
    sender = Delivery(FlakyStore())
    sender.send("tags", refuse)
    sender.send("metrics", lambda _: got.append("metrics"))
    assert got == ["metrics"]
    assert "Not recorded: tags. The tracking store http://host cannot be used" in caplog.text
