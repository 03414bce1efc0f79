"""The start of a run: a new one, one that goes on, one below the parent of its sweep."""

import hashlib
import logging
from dataclasses import dataclass, field
from typing import Any

from recsys.foundations import TrackingError
from recsys.tracking.store import Store, UnreachableError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunRequest:
    """Which run is wanted; see `mlflow_tracker` for the meaning of each."""

    run_name: str | None
    parent_run_id: str | None
    sweep: str | None
    run_id: str | None


@dataclass(frozen=True)
class StartedRun:
    """A run in the store.

    Attributes:
        run_id: Its id.
        parent_run_id: The run above it, if any.
        parameters: What it holds from before it was resumed.
        times_resumed: 0 for a new run.
    """

    run_id: str
    parent_run_id: str | None
    parameters: dict[str, str] = field(default_factory=dict)
    times_resumed: int = 0


def start_run(store: Store, request: RunRequest) -> StartedRun:
    """Start or resume the run.

    Raises:
        TrackingError: The store refuses or does not answer.
    """
    if request.run_id is not None:
        resumed = _resume(store, request.run_id)
        if resumed is not None:
            return resumed
    parent = request.parent_run_id
    if parent is None and request.sweep is not None:
        parent = _parent_of_sweep(store, request.sweep)
    tags = {} if parent is None else {"mlflow.parentRunId": parent}
    if request.run_id is not None:
        tags["recsys.resumed_from"] = request.run_id
    run = store.call(
        lambda c: c.create_run(store.experiment_id, tags=tags, run_name=request.run_name)
    )
    return StartedRun(str(run.info.run_id), parent)


def _resume(store: Store, run_id: str) -> StartedRun | None:
    """Go on with a run, or give None where the store no longer has it."""
    try:
        run = store.call(lambda c: c.get_run(run_id))
    except UnreachableError:
        raise
    except TrackingError as error:
        log.warning("Run %s cannot go on, so a new one is started. %s", run_id, error)
        return None
    if run.info.lifecycle_stage != "active":
        log.warning("Run %s was deleted, so a new one is started.", run_id)
        return None
    times = int(run.data.tags.get("recsys.times_resumed", "0")) + 1

    def go_on(client: Any) -> None:
        client.update_run(run_id, status="RUNNING")
        client.set_tag(run_id, "recsys.times_resumed", str(times))

    store.call(go_on)
    parent = run.data.tags.get("mlflow.parentRunId")
    return StartedRun(run_id, parent, dict(run.data.params), times)


def _parent_of_sweep(store: Store, sweep: str) -> str:
    """Find the run above a sweep's jobs, or make it; jobs that start together get the same."""
    mark = hashlib.sha256(sweep.encode()).hexdigest()[:32]

    def find(client: Any) -> list[str]:
        found = client.search_runs(
            [store.experiment_id],
            filter_string=f"tags.`recsys.sweep` = '{mark}'",
            order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
        )
        return [str(run.info.run_id) for run in found]

    def find_or_make(client: Any) -> str:
        found = find(client)
        if found:
            return found[0]
        name = f"sweep {sweep.rstrip('/').rpartition('/')[2]}"
        tags = {"recsys.sweep": mark}
        run = client.create_run(store.experiment_id, tags=tags, run_name=name)
        made = str(run.info.run_id)
        # It only groups its jobs, so it is finished at once; a job that fails says so here too.
        client.set_terminated(made, "FINISHED")
        first = (find(client) or [made])[0]
        if first != made:  # another machine was quicker
            client.delete_run(made)
        return first

    with store.alone():
        return store.call(find_or_make)
