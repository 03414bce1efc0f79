"""The folder of a training run: nothing in it is overwritten by accident."""

from pathlib import Path
from typing import Any

from recsys.foundations import ConfigError, read_json, write_json

_RUN_FILE = "run.json"


class RunFolder:
    """The folder of one run, new or resumed.

    Args:
        path: The folder; need not exist.
        resume: Whether a run that stands there goes on.

    Raises:
        ConfigError: A run stands there that is not to be resumed, or none does that could be.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._file = path / _RUN_FILE
        started = self._file.exists()
        if started and not resume:
            raise ConfigError(
                f"run_dir={path} holds a run already; give another run_dir, or resume=true."
            )
        if resume and not started:
            raise ConfigError(
                f"resume=true, but run_dir={path} holds no run; give the run_dir of the run."
            )
        self.tracked_run: str | None = read_json(self._file)["tracked_run"] if started else None

    def begin(self, tracked_run: str | None, settings: dict[str, Any]) -> None:
        """Note the run's settings and its id in the tracking store, to resume it by.

        A run that goes on without a store keeps the id that it had.
        """
        kept = self.tracked_run if tracked_run is None else tracked_run
        write_json(self._file, {"tracked_run": kept, "settings": settings})
