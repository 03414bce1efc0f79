"""A run kept in MLflow, which an outage of the store costs points on a chart and nothing else."""

import contextlib
import logging
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from recsys.foundations import TrackingError, check_choice, unwinding_on_signals
from recsys.tracking.code_version import code_version
from recsys.tracking.delivery import Delivery
from recsys.tracking.ending import status_of
from recsys.tracking.names import legal_metric_name, parameter_text, plain
from recsys.tracking.records import send_dataset, send_metrics, send_parameters, send_tags
from recsys.tracking.runs import RunRequest, StartedRun, start_run
from recsys.tracking.store import Store, connect
from recsys.tracking.tracker import Tracker, null_tracker

log = logging.getLogger(__name__)

_LONGEST_VALUE = 6000  # characters of a parameter; MLflow cuts the rest without a word
_ARTIFACT_SECONDS = 600.0  # a bundle is large


def mlflow_tracker(
    uri: str,
    experiment: str,
    run_name: str | None = None,
    *,
    on_error: str = "fail",
    artifact_root: str | None = None,
    base_dir: Path | None = None,
    parent_run_id: str | None = None,
    sweep: str | None = None,
    run_id: str | None = None,
) -> Tracker:
    """Reach the store now, so that a wrong address stops the run before anything heavy.

    Args:
        uri: ``sqlite:///FILE`` or the address of a server.
        experiment: Its name; made if needed.
        run_name: None: MLflow makes one up.
        on_error: "fail" raises if the store cannot be reached, within 30 s; "warn" goes on
            without one.
        artifact_root: Where a new experiment keeps its files. None: ``mlruns`` beside the SQLite
            file, or the server's choice.
        base_dir: What a relative path in `uri` is relative to; None: the working folder.
        parent_run_id: The run that this one stands under.
        sweep: A name that the jobs of one sweep share, in place of `parent_run_id`: the first of
            them makes the parent run, the others find it.
        run_id: A run to go on with; a new one that names it is started if the store lost it.

    Returns:
        A tracker to enter; one that keeps nothing if "warn" and the store is not to be had.

    Raises:
        TrackingError: The store cannot be used and `on_error` is "fail".
        ConfigError: The address is not one of a store.
    """
    check_choice("on_error", on_error, ("fail", "warn"))
    base_dir = Path.cwd() if base_dir is None else base_dir
    try:
        store = connect(uri, experiment=experiment, base_dir=base_dir, artifact_root=artifact_root)
    except TrackingError as error:
        if on_error == "fail":
            raise
        log.warning("%s The run goes on without tracking.", error)
        return null_tracker()
    request = RunRequest(run_name, parent_run_id, sweep, run_id)
    return MlflowTracker(store, request, on_error=on_error)


class MlflowTracker:
    """One run in MLflow; made by `mlflow_tracker`.

    The run is started on entering and ended on leaving: FINISHED, FAILED after an error, KILLED
    after Ctrl-C or SIGTERM (turned into an exit that unwinds, unless somebody handles it). What
    cannot be delivered during an outage waits and is sent when the store is back, in order.
    """

    def __init__(self, store: Store, request: RunRequest, *, on_error: str) -> None:
        self._store, self._request, self._on_error = store, request, on_error
        self._run: StartedRun | None = None
        self._delivery = Delivery(store)
        self._warned: set[str] = set()
        self._signals = contextlib.ExitStack()

    @property
    def run_id(self) -> str | None:
        """Give the run's id; None before it starts or if it could not."""
        return None if self._run is None else self._run.run_id

    @property
    def url(self) -> str | None:
        """Give the page of the run on a server, else the address of the store."""
        if self._run is None:
            return None
        place = self._store.place
        if place.startswith("http"):
            where = f"experiments/{self._store.experiment_id}/runs/{self._run.run_id}"
            return f"{place.rstrip('/')}/#/{where}"
        return place

    def __enter__(self) -> Self:
        """Start the run.

        Raises:
            TrackingError: The store refuses and `on_error` is "fail".
        """
        self._signals.enter_context(unwinding_on_signals())
        try:
            self._run = start_run(self._store, self._request)
        except TrackingError as error:
            if self._on_error == "fail":
                self._signals.close()
                raise
            log.warning("%s The run goes on without tracking.", error)
        self.set_tags(code_version())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run with the status that fits; deliver what waits, once more."""
        with self._signals:
            run, status = self._run, status_of(error)
            if run is None:
                return
            if run.parent_run_id is not None and status != "FINISHED":
                parent = run.parent_run_id
                self._delivery.send("the sweep", lambda c: c.set_terminated(parent, status))
            self._delivery.finish("its end", lambda c: c.set_terminated(run.run_id, status))

    def log_settings(self, flat: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        """Record `flat` as parameters, cut where too long, and `whole` as ``config.yaml``.

        A parameter that a resumed run holds with another value stays; the new value becomes the
        tag ``resumed.NAME``, and the new file lies in the folder ``resumed_N``.
        """
        run = self._run
        if run is None:
            return
        texts = {legal_metric_name(key): parameter_text(value) for key, value in flat.items()}
        long = [key for key, text in texts.items() if len(text) > _LONGEST_VALUE]
        if long:
            names = ", ".join(long)
            log.warning("Cut to %d characters, whole in config.yaml: %s.", _LONGEST_VALUE, names)
        texts = {key: text[:_LONGEST_VALUE] for key, text in texts.items()}
        changed = {k: v for k, v in texts.items() if run.parameters.get(k, v) != v}
        new = {k: v for k, v in texts.items() if k not in run.parameters}
        self._delivery.send("parameters", lambda c: send_parameters(c, run.run_id, new))
        if changed:
            log.info("The resumed run has other values of %s.", ", ".join(sorted(changed)))
            self.set_tags({f"resumed.{key}": text for key, text in changed.items()})
        text = yaml.safe_dump(plain(whole), sort_keys=False, allow_unicode=True)
        name = f"resumed_{run.times_resumed}/config.yaml" if run.times_resumed else "config.yaml"
        self._delivery.send("config.yaml", lambda c: c.log_text(run.run_id, text, name))

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Record numbers under their legal names, in one call; a number not finite is left out."""
        run = self._run
        if run is None:
            return
        values = {legal_metric_name(name): float(value) for name, value in metrics.items()}
        undefined = {name for name, value in values.items() if not math.isfinite(value)}
        if undefined - self._warned:
            log.warning("Not finite, so not recorded: %s.", ", ".join(sorted(undefined)))
            self._warned |= undefined
        now = int(time.time() * 1000)
        rows = [(n, value, now, step) for n, value in values.items() if n not in undefined]
        self._delivery.send("metrics", lambda c: send_metrics(c, run.run_id, rows))

    def log_artifact(self, path: Path, folder: str | None = None) -> None:
        """Record a copy of a file, or of a folder under its name."""
        run = self._run
        if run is None:
            return

        def send(client: Any) -> None:
            if path.is_dir():
                inside = f"{folder}/{path.name}" if folder else path.name
                client.log_artifacts(run.run_id, str(path), inside)
            else:
                client.log_artifact(run.run_id, str(path), folder)

        self._delivery.send(path.name, send, _ARTIFACT_SECONDS)

    def log_dataset(self, name: str, fingerprint: str, source: str) -> None:
        """Record the data as a dataset input; the whole fingerprint is a tag too."""
        run = self._run
        if run is None:
            return
        self._delivery.send(
            "the dataset", lambda c: send_dataset(c, run.run_id, name, fingerprint, source)
        )
        self.set_tags({"dataset.fingerprint": fingerprint})

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record texts that may change later."""
        run = self._run
        if run is None:
            return
        texts = {legal_metric_name(key): parameter_text(value) for key, value in tags.items()}
        self._delivery.send("tags", lambda c: send_tags(c, run.run_id, texts))
