"""The calls that put records into an MLflow run, each a batch within MLflow's limits."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_METRICS_A_CALL, _PARAMETERS_A_CALL = 1000, 100
_LONGEST_TAG = 5000  # the least that any of its databases keeps
_LONGEST_DIGEST = 36


def send_metrics(client: Any, run_id: str, rows: Sequence[tuple[str, float, int, int]]) -> None:
    """Send metrics: name, value, time in ms, step."""
    from mlflow.entities import Metric

    for some in _pieces(rows, _METRICS_A_CALL):
        client.log_batch(run_id, metrics=[Metric(*row) for row in some])


def send_parameters(client: Any, run_id: str, values: Mapping[str, str]) -> None:
    """Send parameters; one that the run holds already must have the same value."""
    from mlflow.entities import Param

    for some in _pieces(list(values.items()), _PARAMETERS_A_CALL):
        client.log_batch(run_id, params=[Param(*pair) for pair in some])


def send_tags(client: Any, run_id: str, tags: Mapping[str, str]) -> None:
    """Send tags; they replace those of the same name."""
    from mlflow.entities import RunTag

    for some in _pieces(list(tags.items()), _PARAMETERS_A_CALL):
        client.log_batch(run_id, tags=[RunTag(key, text[:_LONGEST_TAG]) for key, text in some])


def send_dataset(client: Any, run_id: str, name: str, fingerprint: str, source: str) -> None:
    """Send a dataset as the run's input, in the context "training"."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(
        name=name[:500],
        digest=fingerprint[:_LONGEST_DIGEST],
        source_type="local",
        source=json.dumps({"uri": source}),
    )
    tags = [InputTag(key="mlflow.data.context", value="training")]
    client.log_inputs(run_id, datasets=[DatasetInput(dataset=dataset, tags=tags)])


def _pieces(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
