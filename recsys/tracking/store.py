"""The door to MLflow: connect once, call with a deadline, quietly, one sentence on failure."""

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from recsys.foundations import ConfigError, TrackingError
from recsys.tracking.names import without_credentials

log = logging.getLogger(__name__)
T = TypeVar("T")

_SQLITE = "sqlite:///"
_OPENING_SECONDS = 25.0  # the command promises to end within 30
_LOCK_SECONDS = 120.0  # many processes may wait for one that makes the tables on a slow disk


class UnreachableError(TrackingError):
    """The store does not answer; it may do so later."""


@dataclass(frozen=True)
class Store:
    """A store that answered once.

    Attributes:
        client: The MlflowClient.
        uri: Where it is; a file by its absolute path.
        experiment_id: The experiment that runs go to.
        lock: Held while something must not be made twice; None for a server.
    """

    client: Any
    uri: str
    experiment_id: str
    lock: Path | None

    @property
    def place(self) -> str:
        """Give the address for people to read, without credentials."""
        return without_credentials(self.uri)

    def call(self, function: Callable[[Any], T], seconds: float = 25.0) -> T:
        """Give what the function of the client returns.

        Args:
            function: Takes the client.
            seconds: How long a server may take; a file is given the time it needs.

        Raises:
            UnreachableError: The server does not answer in time.
            TrackingError: The store refuses, in one sentence.
        """
        with _quiet(), _patience(seconds):
            return _ask(lambda: function(self.client), self.uri, seconds)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes on this machine out, where the store is a file."""
        if self.lock is None:
            yield
            return
        with _locked(self.lock, self.uri):
            yield


def connect(uri: str, *, experiment: str, base_dir: Path, artifact_root: str | None) -> Store:
    """Reach the store and its experiment; a new SQLite file gets its tables.

    Args:
        uri: ``sqlite:///FILE``, or any address of a server that MLflow knows.
        experiment: Its name; made if the store does not have it.
        base_dir: What a relative SQLite path is relative to.
        artifact_root: Where a new experiment keeps its artifacts. None: ``mlruns`` beside the
            SQLite file, or wherever the server says.

    Raises:
        ConfigError: The address is not one of a store.
        TrackingError: The store refuses or does not answer.
    """
    uri, file = _resolve(uri, base_dir)
    if file is None:
        lock = None
    else:
        artifact_root = artifact_root or (file.parent / "mlruns").as_uri()
        lock = file.with_name(f".{file.name}.lock")
    if artifact_root is not None and "://" not in artifact_root:
        artifact_root = (base_dir / Path(artifact_root).expanduser()).absolute().as_uri()
    mlflow = _import_mlflow()

    def reach() -> Store:
        with _artifact_root(artifact_root):
            client = mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
            found = _experiment(client, experiment, artifact_root)
        return Store(client, uri, found, lock)

    with _quiet(), _patience(_OPENING_SECONDS):
        if lock is None:
            return _ask(reach, uri, _OPENING_SECONDS)
        with _locked(lock, uri):
            return _ask(reach, uri, _OPENING_SECONDS)


def _resolve(uri: str, base_dir: Path) -> tuple[str, Path | None]:
    """Give the full address, and the file if it is SQLite's."""
    if uri.startswith(_SQLITE):
        path, question, options = uri.removeprefix(_SQLITE).partition("?")
        if not Path(path).name or path == ":memory:":
            raise ConfigError(f"tracking.uri must name a file behind {_SQLITE}, got {uri!r}.")
        file = (base_dir / Path(path).expanduser()).absolute()
        return f"{_SQLITE}{file}{question}{options}", file
    if uri.startswith("file:") or ("://" not in uri and not uri.startswith("databricks")):
        raise ConfigError(
            f"tracking.uri must be like sqlite:///mlflow.db or http://host:5000, got {uri!r}: "
            "MLflow keeps no runs in a plain folder any more."
        )
    return uri, None


def _experiment(client: Any, name: str, artifact_root: str | None) -> str:
    """Give the experiment's id; processes that make it at the same moment all get it."""
    found = client.get_experiment_by_name(name)
    if found is None:
        location = artifact_root and f"{artifact_root.rstrip('/')}/{_folder_name(name)}"
        try:
            return str(client.create_experiment(name, artifact_location=location))
        except Exception:
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        raise TrackingError(
            f"The experiment {name!r} was deleted in the tracking store; restore it or set "
            "another tracking.experiment."
        )
    if artifact_root is not None and not found.artifact_location.startswith(artifact_root):
        log.warning(
            "The experiment %r keeps its files in %s, as when it was made.",
            name,
            without_credentials(found.artifact_location),
        )
    return str(found.experiment_id)


def _folder_name(experiment: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_. " else "_" for sign in experiment)


def _ask(function: Callable[[], T], uri: str, seconds: float) -> T:
    """Call in a thread that may be left behind, for no setting of MLflow bounds every wait."""
    outcome: list[T] = []
    failure: list[Exception] = []

    def work() -> None:
        try:
            outcome.append(function())
        except Exception as error:  # noqa: BLE001  (a store may raise anything)
            failure.append(error)

    if uri.startswith(_SQLITE):
        work()
    else:
        thread = threading.Thread(target=work, name="tracking", daemon=True)
        thread.start()
        thread.join(seconds)
    if outcome:
        return outcome[0]
    place = without_credentials(uri)
    if not failure:
        raise UnreachableError(f"The tracking store {place} did not answer in {seconds:.0f} s.")
    if isinstance(failure[0], TrackingError):
        raise failure[0]
    chain = _chain(failure[0])
    away = any(isinstance(e, OSError) or type(e).__name__ == "OperationalError" for e in chain)
    kind, verb = (
        (UnreachableError, "does not answer") if away else (TrackingError, "cannot be used")
    )
    raise kind(f"The tracking store {place} {verb}: {_reason(chain)}") from failure[0]


def _chain(error: BaseException | None) -> list[BaseException]:
    """List an error and what led to it, the first cause last."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _reason(chain: list[BaseException]) -> str:
    """Say in one line why: the system's own word for it where there is one."""
    words = [e.strerror for e in chain if isinstance(e, OSError) and isinstance(e.strerror, str)]
    lines = [line for line in str(chain[0]).splitlines() if line.strip()]
    text = words[-1] if words else (lines or [type(chain[0]).__name__])[0]
    return f"{without_credentials(text).strip()[:300].rstrip('.')}."


@contextlib.contextmanager
def _locked(lock: Path, uri: str) -> Iterator[None]:
    place = without_credentials(uri)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()  # where no file can be, FileLock would try until its time is over
        holder = FileLock(lock)
        holder.acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise TrackingError(f"The tracking store {place} is held by another process.") from error
    except OSError as error:
        raise TrackingError(f"The tracking store {place} cannot be opened: {error}.") from error
    try:
        yield
    finally:
        holder.release()


def _import_mlflow() -> Any:
    with _quiet(), _environment({"MLFLOW_DISABLE_TELEMETRY": "true"}):
        import mlflow  # 1.4 s, which only a tracked run pays

        return mlflow


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence what MLflow and its database tools say of themselves; errors reach us raised."""
    names = ("mlflow", "alembic", "urllib3.connectionpool", "sqlalchemy")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    modules = r"(mlflow|alembic|sqlalchemy|pydantic|google)(\.|$)"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=modules)
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _patience(seconds: float) -> contextlib.AbstractContextManager[None]:
    """Have MLflow's own HTTP calls give up before the deadline does, unless the user set it."""
    bounds = {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, int(seconds / 2.5))),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return _environment(bounds)


def _artifact_root(root: str | None) -> contextlib.AbstractContextManager[None]:
    """Tell a new SQLite store where "Default", the experiment it makes itself, keeps files."""
    return _environment({} if root is None else {"_MLFLOW_SERVER_ARTIFACT_ROOT": root})


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
