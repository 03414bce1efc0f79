"""What a run tells about itself, and the tracker that keeps none of it."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self


class Tracker(Protocol):
    """A context manager around one run; the run ends as the block ends.

    Only opening may fail: once the block is entered, no method raises because of the store.
    """

    @property
    def run_id(self) -> str | None:
        """Give the id of the run, to resume it by; None where nothing is kept."""
        ...

    @property
    def url(self) -> str | None:
        """Give the place where a person finds the run; None where nothing is kept."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def log_settings(self, flat: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        """Record the settings: `flat` as parameters by dotted name, `whole` as a file."""
        ...

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Record numbers at a step; those that are not finite are left out."""
        ...

    def log_artifact(self, path: Path, folder: str | None = None) -> None:
        """Record a copy of a file or folder, inside `folder` of the run's artifacts."""
        ...

    def log_dataset(self, name: str, fingerprint: str, source: str) -> None:
        """Record which data the run used: its name, hash and origin."""
        ...

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record texts that may change later."""
        ...


class NullTracker:
    """A tracker that keeps nothing and needs no store."""

    run_id: str | None = None
    url: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing."""

    def log_settings(self, flat: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        """Do nothing."""

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Do nothing."""

    def log_artifact(self, path: Path, folder: str | None = None) -> None:
        """Do nothing."""

    def log_dataset(self, name: str, fingerprint: str, source: str) -> None:
        """Do nothing."""

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Do nothing."""


def null_tracker() -> NullTracker:
    """Make the tracker that keeps nothing."""
    return NullTracker()
