"""Lines of log on the terminal: plain, on stderr, beside progress bars."""

import logging
import shutil
import sys
from pathlib import Path


class _Lines(logging.Handler):
    """Write each record above any progress bar; a warning says that it is one."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        prefix = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        try:
            tqdm.write(prefix + self.format(record), file=sys.stderr)
        except Exception:  # noqa: BLE001  (a full disk or closed pipe must not stop the run)
            self.handleError(record)


def configure_logging() -> None:
    """Send the toolkit's lines and the libraries' warnings to stderr.

    Hydra's own lines on stdout go; its file in the run's folder stays. ``hydra.verbose=true``
    shows debugging lines too.
    """
    root = logging.getLogger()
    for handler in list(root.handlers):
        if type(handler) is logging.StreamHandler or isinstance(handler, _Lines):
            root.removeHandler(handler)
    root.addHandler(_Lines())
    verbose = 0 < root.level <= logging.DEBUG
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    for name in ("recsys", "pipelines", "__main__"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.captureWarnings(True)


def remove_unused_folder(folder: Path) -> None:
    """Remove the folder of a job that left nothing but Hydra's notes and an empty log."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if isinstance(handler, logging.FileHandler)]
    logs = [Path(handler.baseFilename) for handler in ours]
    held = set(folder.iterdir()) if folder.is_dir() else set()
    written = any(path.stat().st_size > 0 for path in logs if path in held)
    if not held or written or held - {folder / ".hydra", *logs}:
        return
    for handler in ours:
        root.removeHandler(handler)
        handler.close()
    shutil.rmtree(folder, ignore_errors=True)
