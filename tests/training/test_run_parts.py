"""The parts around the loop: the run's folder, its device, validation, what a run comes to."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recsys.data import FeatureTable, PreparedDataset
from recsys.foundations import ConfigError, read_json
from recsys.models import QueryInputs
from recsys.tracking import NullTracker
from recsys.training import (
    FitResult,
    MatrixProducts,
    RunFolder,
    TrainingRun,
    Validator,
    choose_device,
    fit,
    log_outcome,
    scores_of,
)

MakeRun = Callable[..., TrainingRun]


def test_a_new_folder_takes_a_run_and_is_then_taken(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunFolder(path, resume=False).begin("abc", {"seed": 0})
    assert read_json(path / "run.json") == {"tracked_run": "abc", "settings": {"seed": 0}}
    with pytest.raises(ConfigError, match=r"run_dir=.*/run holds a run already; .* resume=true"):
        RunFolder(path, resume=False)
    assert RunFolder(path, resume=True).tracked_run == "abc"


def test_a_folder_with_other_files_takes_a_run(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    RunFolder(tmp_path, resume=False).begin(None, {})
    assert RunFolder(tmp_path, resume=True).tracked_run is None


def test_there_is_nothing_to_resume_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"resume=true, but run_dir=.* holds no run"):
        RunFolder(tmp_path, resume=True)


def test_a_run_resumed_without_tracking_keeps_the_run_it_was_tracked_as(tmp_path: Path) -> None:
    RunFolder(tmp_path, resume=False).begin("abc", {})
    RunFolder(tmp_path, resume=True).begin(None, {})
    assert RunFolder(tmp_path, resume=True).tracked_run == "abc"


def test_the_device_is_the_best_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for cuda, mps, best in [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=cuda: there)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda there=mps: there)
        assert choose_device("auto").type == best
        assert choose_device("cpu").type == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(
        ConfigError, match=r"trainer\.device is 'cuda', but this machine offers: mps, cpu"
    ):
        choose_device("cuda")


def test_products_round_to_tf32_while_a_run_trains_on_cuda() -> None:
    before = torch.get_float32_matmul_precision()
    inside = {}
    for precision in ("float32", "bfloat16", "tf32"):
        with MatrixProducts(precision, torch.device("cuda")):
            inside[precision] = torch.get_float32_matmul_precision()
        assert torch.get_float32_matmul_precision() == before
    assert inside == {"float32": before, "bfloat16": before, "tf32": "high"}


def test_a_failed_run_leaves_products_as_they_were() -> None:
    before = torch.get_float32_matmul_precision()
    with (
        pytest.raises(RuntimeError, match="stopped"),
        MatrixProducts("tf32", torch.device("cuda")),
    ):
        raise RuntimeError("stopped")
    assert torch.get_float32_matmul_precision() == before


def test_tf32_is_refused_where_there_is_none() -> None:
    MatrixProducts("bfloat16", torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"precision=tf32 is of products on cuda.*on cpu"):
        MatrixProducts("tf32", torch.device("cpu"))


def slow_scores(run: TrainingRun, dataset: PreparedDataset, k: int) -> tuple[float, float]:
    """Rank all candidates of each validation user in a loop; ties stand in the order of rows.

    Gives the mean recall, and the mean of log P over the validation events.
    """
    model = run.step.model
    model.eval()
    recalls, likelihoods = [], []
    items = dataset.items.features.take(np.arange(dataset.num_items))
    with torch.no_grad():
        catalogue = model.embed_candidates(torch.arange(dataset.num_items), items)
        for user in np.unique(dataset.validation.users):
            history = dataset.train.items[dataset.train.users == user]
            newest = history[::-1][:5]
            padded = np.full((1, 5), -1, np.int64)
            padded[0, : len(newest)] = newest
            row = np.array([user])
            nothing = FeatureTable.missing(dataset.context_schema, 1)
            features = dataset.users.features.take(row)
            query = model.embed_queries(QueryInputs(row, padded, features, nothing))
            scores = (query @ catalogue.T)[0].double().numpy()
            logits = scores / float(model.temperature())
            events = dataset.validation.items[dataset.validation.users == user]
            likelihoods += list(logits[events] - np.log(np.exp(logits).sum()))
            scores[history] = -np.inf
            best = np.argsort(-scores, kind="stable")[:k]
            truth = set(events.tolist())
            recalls.append(len(truth & set(best.tolist())) / len(truth))
    return float(np.mean(recalls)), float(np.mean(likelihoods))


def test_validation_is_that_of_a_slow_loop(make_run: MakeRun, dataset: PreparedDataset) -> None:
    run = make_run(epochs=1)
    fit(run, resume=False)
    for k in (1, 5, 10):
        scores = Validator(dataset, k=k, max_users=None, seed=0).measure(run.step.model)
        recall, likelihood = slow_scores(run, dataset, k)
        assert scores[f"recall_at_{k}"] == pytest.approx(recall, abs=1e-12)
        assert scores["log_likelihood"] == pytest.approx(likelihood, abs=1e-5)
        assert scores["perplexity"] == pytest.approx(np.exp(-likelihood), rel=1e-5)


def test_users_of_whom_the_model_reads_nothing_get_popular_items(
    make_run: MakeRun, dataset: PreparedDataset
) -> None:
    run = make_run(epochs=1)
    fit(run, resume=False)
    num_known, part = 27, dataset.validation
    left = np.flatnonzero(dataset.train.users < num_known)
    less = replace(dataset, num_users=num_known, train=dataset.train.take(left))
    assert len(part) == len(np.unique(part.users)) == 40  # one event each
    popular = np.argsort(-dataset.items.counts[: dataset.num_items], kind="stable")[:5]
    found = np.isin(part.items[part.users >= num_known], popular).sum()
    asked = replace(dataset, validation=part.take(np.flatnonzero(part.users < num_known)))
    expected = (slow_scores(run, asked, 5)[0] * num_known + found) / 40
    scores = Validator(less, k=5, max_users=None, seed=0).measure(run.step.model)
    assert scores["recall_at_5"] == pytest.approx(expected, abs=1e-12)
    assert scores["recall_at_5"] != pytest.approx(slow_scores(run, less, 5)[0])


def test_events_of_items_that_are_no_candidates_are_named_and_counted(
    make_run: MakeRun, dataset: PreparedDataset, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    model = make_run().step.model
    assert not caplog.messages
    fewer = PreparedDataset(**{**vars(dataset), "num_items": dataset.num_items - 2})
    later = dataset.validation.items >= fewer.num_items
    assert 0 < later.sum() < 40
    names = dataset.items.vocabulary.ids_of(np.unique(dataset.validation.items[later])).to_pylist()
    scores = Validator(fewer, k=5, max_users=None, seed=0).measure(model)
    assert caplog.messages == [
        f"validation: {later.sum()} of 40 events are of items that are no candidates, so they "
        f"have no likelihood ({len(names)} items: {', '.join(names)})"
    ]
    assert scores["num_scored_events"] == 40 - later.sum()
    assert scores["num_unknown_events"] == later.sum()


def test_validation_on_some_users_is_the_same_draw_each_time(
    make_run: MakeRun, dataset: PreparedDataset
) -> None:
    model = make_run().step.model

    def measure(max_users: int, seed: int = 0) -> dict[str, float]:
        return Validator(dataset, k=10, max_users=max_users, seed=seed).measure(model)

    assert measure(7) == measure(7)
    assert measure(7)["num_scored_events"] == 7
    assert len({measure(1, seed)["recall_at_10"] for seed in range(20)}) == 2  # one user's: 0 or 1
    assert measure(10_000) == Validator(dataset, k=10, max_users=None, seed=3).measure(model)


def test_an_empty_validation_part_measures_nothing(
    make_run: MakeRun, dataset: PreparedDataset
) -> None:
    nothing = dataset.validation.take(np.zeros(0, np.int64))
    empty = PreparedDataset(**{**vars(dataset), "validation": nothing})
    assert Validator(empty, k=5, max_users=3, seed=0).measure(make_run().step.model) == {}


class FakeReport:
    """A report of two numbers."""

    def __init__(self) -> None:
        self.about = {"part": "test"}

    def flat_metrics(self) -> dict[str, float]:
        return {"recall_at_10": 0.25, "coverage_at_10": 0.5}


def test_scores_stand_by_part() -> None:
    records = [
        {
            "epoch": epoch,
            "train_loss": 6.0,
            "validation_recall_at_10": r,
            "validation_perplexity": p,
        }
        for epoch, r, p in ((1, 0.4, 90.0), (2, 0.5, 80.0), (3, 0.3, 70.0))
    ]
    report: Any = FakeReport()
    metrics = {"recall_at_10": 0.25, "coverage_at_10": 0.5}
    best = {"recall_at_10": 0.5, "perplexity": 80.0}  # of the epoch whose weights are kept
    assert scores_of(FitResult(records, 2, 0.5, 10), report) == {
        "validation": best,
        "test": metrics,
    }
    assert scores_of(FitResult([], 3, None, 10), None) == {}


class Recorder(NullTracker):
    """A tracker that remembers the files."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def log_artifact(self, path: Path, folder: str | None = None) -> None:
        self.files.append(path)


def test_without_a_report_the_bundle_alone_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = Recorder()
    log_outcome(tracker, tmp_path, FitResult([], 1, None, 10), None, tmp_path / "bundle")
    assert tracker.files == [tmp_path / "bundle"]
    assert "the part to evaluate on is empty: there is no report" in caplog.messages
