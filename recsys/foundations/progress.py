"""Progress of long work: a bar with rate and ETA on a terminal, log lines elsewhere."""

import logging
import sys
import time
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

log = logging.getLogger(__name__)
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BEFORE_BAR = 0.5  # what ends sooner, such as a request, draws none


class Progress:
    """Count work done, as a context manager; `advance` is cheap enough for every batch.

    Args:
        what: What is being done, in two or three words.
        total: Units of work in all.
        unit: What one unit is called, in the plural.
        done: Units done before, by an earlier process; they do not count in the rate.
    """

    def __init__(self, what: str, total: int, unit: str, *, done: int = 0) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._before, self._done, self._note = done, done, ""
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> Self:
        self._start = self._last_line = time.monotonic()
        if sys.stderr.isatty():
            unit = f" {self._unit}"
            self._bar = tqdm(
                total=self._total,
                initial=self._before,
                desc=self._what,
                unit=unit,
                unit_scale=True,
                leave=False,
                delay=_SECONDS_BEFORE_BAR,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, amount: int, note: str = "") -> None:
        """Add work done; `note` is shown behind the rate."""
        self._done, self._note = self._done + amount, note
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(amount)
        elif time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._log_line()

    def _log_line(self) -> None:
        seconds = time.monotonic() - self._start
        rate = (self._done - self._before) / max(seconds, 1e-9)
        left = (self._total - self._done) / max(rate, 1e-9)
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
        text = f"{self._what}: {self._done:,} of {self._total:,} {self._unit}, {shown}/s"
        log.info("%s, %.0f s left%s", text, left, f", {self._note}" if self._note else "")
