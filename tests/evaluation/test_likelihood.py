"""The likelihood of what users chose in a part: in the means of an epoch and in the report."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data import (
    FilterSettings,
    PreparedDataset,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.evaluation import (
    CatalogueSoftmax,
    EvaluationQueries,
    Report,
    build_queries,
    evaluate_retrieval,
    quick_metrics,
    report_text,
)
from recsys.index import ExactIndex

USERS, ITEMS, TEMPERATURE = 600, 40, 0.5


def make_log(users: NDArray[Any], items: NDArray[Any], first_time: int) -> RawLog:
    text = pa.large_string()
    columns = {
        "user_id": pa.array([f"u{user}" for user in users], text),
        "item_id": pa.array([f"i{item}" for item in items], text),
        "timestamp": pa.array(first_time + np.arange(len(users)), pa.int64()),
    }
    return RawLog(pa.table(columns), "time", {}, len(users), [])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    """Prepare a log in whose test part items repeat, and some were never in training."""
    rng = np.random.default_rng(0)
    parts = [
        make_log(rng.integers(0, USERS, 3000), rng.integers(0, ITEMS, 3000), 0),
        make_log(np.repeat(np.arange(USERS), 2), rng.integers(0, ITEMS + 9, 2 * USERS), 10_000),
    ]
    test = parts[1].table
    test = pa.concat_tables([test, test.slice(0, 100)])  # a hundred events once more
    path = prepare_dataset(
        parts[0],
        items=None,
        users=None,
        output=tmp_path_factory.mktemp("likelihood") / "prepared",
        filters=FilterSettings(duplicates="keep_all"),
        split=SplitSettings(rule="given"),
        seed=0,
        exclude_seen=True,
        test=RawLog(test, "time", {}, test.num_rows, []),
    )
    return read_prepared(path)


class Model:
    """A random vector for each user row and each item."""

    def __init__(self, dataset: PreparedDataset, scale: float = 1.0) -> None:
        rng = np.random.default_rng(1)
        self.users = scale * rng.normal(size=(len(dataset.users), 6)).astype(np.float32)
        self.items = rng.normal(size=(dataset.num_items, 6)).astype(np.float32)

    def embed(self, queries: EvaluationQueries) -> NDArray[np.float32]:
        return self.users[queries.user_rows]

    @property
    def softmax(self) -> CatalogueSoftmax:
        return CatalogueSoftmax(self.items, TEMPERATURE)


def slow_values(dataset: PreparedDataset, model: Model) -> list[float]:
    """Give log P of each test event whose item is a candidate, in a loop, in float64."""
    values = []
    for user, item in zip(dataset.test.users, dataset.test.items, strict=True):
        if item < dataset.num_items:
            logits = model.items.astype(float) @ model.users[user].astype(float) / TEMPERATURE
            values.append(logits[item] - math.log(sum(math.exp(logit) for logit in logits)))
    return values


def evaluate(dataset: PreparedDataset, model: Model, **changes: Any) -> Report:
    arguments: dict[str, Any] = {
        "embed": model.embed,
        "exact": ExactIndex(model.items),
        "approximate": None,
        "ks": [5],
        "seed": 0,
        "num_resamples": 200,
        "level": 0.95,
        "softmax": model.softmax,
    }
    return evaluate_retrieval(dataset, "test", **arguments | changes)


def quick(dataset: PreparedDataset, model: Model, **changes: Any) -> dict[str, float]:
    arguments: dict[str, Any] = {
        "embed": model.embed,
        "exact": ExactIndex(model.items),
        "ks": [5],
        "exclude_seen": True,
    }
    return quick_metrics(build_queries(dataset, "test"), **arguments | changes)


def test_an_epochs_means_hold_that_of_each_event_in_a_slow_loop(dataset: PreparedDataset) -> None:
    model = Model(dataset)
    values = slow_values(dataset, model)
    assert USERS < len(values) < len(dataset.test)
    metrics = quick(dataset, model, softmax=model.softmax)
    mean = math.fsum(values) / len(values)  # over events, whoever's they are
    assert metrics["log_likelihood"] == pytest.approx(mean, abs=1e-6)
    assert metrics["perplexity"] == pytest.approx(math.exp(-mean), rel=1e-6)
    assert metrics["num_scored_events"] == len(values)
    assert metrics["num_unknown_events"] == len(dataset.test) - len(values)
    without = quick(dataset, model)
    assert "log_likelihood" not in without
    assert without.items() <= metrics.items()


def test_the_report_has_the_same_numbers_with_intervals(
    dataset: PreparedDataset, tmp_path: Path
) -> None:
    model = Model(dataset)
    report, metrics = evaluate(dataset, model), quick(dataset, model, softmax=model.softmax)
    mean, size = report.likelihood["log_likelihood"], report.likelihood["perplexity"]
    assert mean.value == pytest.approx(metrics["log_likelihood"], rel=1e-12)
    assert size.value == pytest.approx(metrics["perplexity"], rel=1e-12)
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low < mean.value < mean.high
    # Of means of some thousand events the interval is about 2 x 1.96 standard errors wide.
    values = slow_values(dataset, model)
    width = 2 * 1.96 * float(np.std(values)) / math.sqrt(len(values))
    assert mean.high - mean.low == pytest.approx(width, rel=0.25)
    assert (size.low, size.high) == (math.exp(-mean.high), math.exp(-mean.low))

    report.write(tmp_path / "report.json")
    plain = json.loads((tmp_path / "report.json").read_text())
    assert plain["likelihood"]["metrics"] == {
        "log_likelihood": mean.value,
        "perplexity": size.value,
    }
    assert plain["likelihood"]["intervals"]["perplexity"] == [size.low, size.high]
    assert plain["about"]["temperature"] == TEMPERATURE
    assert plain["counts"]["num_scored_events"] == len(values)
    flat = report.flat_metrics()
    assert (flat["log_likelihood"], flat["perplexity"]) == (mean.value, size.value)
    assert flat["num_unknown_events"] == len(dataset.test) - len(values)
    [line] = [line for line in report_text(report).splitlines() if "Log-likelihood" in line]
    assert f"perplexity {size.value:.1f} [{size.low:.1f}, {size.high:.1f}]: mean over" in line
    assert f"softmax over {dataset.num_items} items" in line


def test_of_several_interests_the_largest_scores_are_ranked_and_make_the_softmax(
    dataset: PreparedDataset,
) -> None:
    # Interests of the same directions, of which the second is the longer one by half: where a
    # score is above 0 the second counts, elsewhere the first.
    model = Model(dataset)

    def embed(queries: EvaluationQueries) -> NDArray[np.float32]:
        plain = model.embed(queries)
        return np.stack([plain, 1.5 * plain], axis=1)

    values = []
    for user, item in zip(dataset.test.users, dataset.test.items, strict=True):
        if item < dataset.num_items:
            scores = model.items.astype(float) @ model.users[user].astype(float)
            logits = np.maximum(scores, 1.5 * scores) / TEMPERATURE
            values.append(logits[item] - math.log(sum(math.exp(logit) for logit in logits)))
    metrics = quick(dataset, model, softmax=model.softmax, embed=embed)
    plain = quick(dataset, model, softmax=model.softmax)
    assert metrics["log_likelihood"] == pytest.approx(math.fsum(values) / len(values), abs=1e-6)
    assert metrics["log_likelihood"] != pytest.approx(plain["log_likelihood"], abs=1e-3)
    assert metrics["recall_at_5"] == plain["recall_at_5"]  # the order of the items is the same
    report = evaluate(dataset, model, embed=embed, approximate=ExactIndex(model.items))
    assert report.likelihood["log_likelihood"].value == pytest.approx(metrics["log_likelihood"])
    assert report.metrics["recall_at_5"].value == pytest.approx(metrics["recall_at_5"])


def test_numbers_behind_those_of_the_softmax_change_the_ranking_alone(
    dataset: PreparedDataset,
) -> None:
    model = Model(dataset)
    more = np.random.default_rng(2).normal(size=(dataset.num_items, 4)).astype(np.float32)
    items = np.concatenate([model.items, more], axis=1)
    softmax = CatalogueSoftmax(items, TEMPERATURE, dim=6)

    def embed(queries: EvaluationQueries) -> NDArray[np.float32]:
        plain = model.embed(queries)
        return np.concatenate([plain, 3 * np.ones_like(plain[:, :4])], axis=1)

    values = slow_values(dataset, model)
    changes: dict[str, Any] = {"embed": embed, "exact": ExactIndex(items), "softmax": softmax}
    metrics, report = quick(dataset, model, **changes), evaluate(dataset, model, **changes)
    mean = math.fsum(values) / len(values)
    assert metrics["log_likelihood"] == pytest.approx(mean, abs=1e-6)
    assert report.likelihood["log_likelihood"].value == pytest.approx(mean, abs=1e-6)
    assert metrics["recall_at_5"] != quick(dataset, model)["recall_at_5"]
    assert report.metrics["recall_at_5"] != evaluate(dataset, model).metrics["recall_at_5"]


def test_without_a_softmax_the_report_says_nothing_of_it(dataset: PreparedDataset) -> None:
    report = evaluate(dataset, Model(dataset), softmax=None)
    assert report.likelihood == {}
    assert "num_scored_events" not in report.counts
    assert "Log-likelihood" not in report_text(report)


def test_a_perplexity_beyond_a_float_is_infinite_and_no_report_holds_it(
    dataset: PreparedDataset, tmp_path: Path
) -> None:
    model = Model(dataset, scale=300.0)
    metrics = quick(dataset, model, softmax=model.softmax)
    assert metrics["log_likelihood"] < -710
    assert metrics["perplexity"] == math.inf
    report = evaluate(dataset, model)
    assert set(report.likelihood) == {"log_likelihood"}
    report.write(tmp_path / "report.json")  # infinity is no JSON
    assert "perplexity" not in report_text(report)


def test_a_part_of_unknown_items_alone_has_counts_and_no_likelihood(
    dataset: PreparedDataset,
) -> None:
    unknown = dataset.test.take(np.flatnonzero(dataset.test.items >= dataset.num_items))
    only = PreparedDataset(**{**vars(dataset), "test": unknown})
    model = Model(dataset)
    metrics = quick(only, model, softmax=model.softmax)
    assert (metrics["num_scored_events"], metrics["num_unknown_events"]) == (0, len(unknown))
    assert "log_likelihood" not in metrics
    report = evaluate(only, model)
    assert report.likelihood == {}
    assert report.counts["num_unknown_events"] == len(unknown)
