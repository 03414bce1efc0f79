"""Delivery of records to a store that may go away and come back."""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from recsys.foundations import TrackingError
from recsys.tracking.store import Store, UnreachableError

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 60.0  # after an outage nothing is tried for so long
_MOST_WAITING = 10_000  # records; the oldest go first


class Delivery:
    """Send records in order; those that an outage stops wait until the store is back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[tuple[str, Callable[[Any], object], float]] = deque()
        self._pause_until = 0.0

    def send(self, what: str, function: Callable[[Any], object], seconds: float = 25.0) -> None:
        """Send a record, or keep it for later; never raises because of the store.

        Args:
            what: Its name in a warning.
            function: Takes the client; may be called long after.
            seconds: How long a server may take.
        """
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
        self._waiting.append((what, function, seconds))
        if time.monotonic() >= self._pause_until:
            self._deliver()

    def finish(self, what: str, function: Callable[[Any], object]) -> None:
        """Send the last record and all that waits, without regard to a pause."""
        self._pause_until = 0.0
        self.send(what, function)
        if self._waiting:
            names = ", ".join(dict.fromkeys(name for name, _, _ in self._waiting))
            log.warning("%s never got: %s.", self._store.place, names[:300])

    def _deliver(self) -> None:
        while self._waiting:
            what, function, seconds = self._waiting[0]
            try:
                self._store.call(function, seconds)
            except UnreachableError as error:
                log.warning("%s The run goes on; records wait.", error)
                self._pause_until = time.monotonic() + _PAUSE_SECONDS
                return
            except TrackingError as error:
                log.warning("Not recorded: %s. %s", what, error)
            self._waiting.popleft()
