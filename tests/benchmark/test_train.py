"""Whole trainings, with towers that only count: what is timed, what is reached, what is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from recsys.benchmark import TrainPlan, TrainResult, measure_train, write_train, write_train_plots
from recsys.benchmark.train import HISTORY, NAIVE, PEER, TO_RECALL

PROFILES = ("profile tower, 4 users a step", "profile tower, 1,000 users a step")


class Counting:
    """A training that counts its epochs, and is its own model."""

    def __init__(self, num_examples: int) -> None:
        self.num_examples, self.epochs, self.begun = num_examples, 0, 0

    @property
    def model(self) -> Any:
        return self

    def begin(self) -> None:
        self.epochs, self.begun = 0, self.begun + 1

    def run_epoch(self) -> None:
        self.epochs += 1


class Judge:
    """Recalls of a list, by the epochs that a training has behind it; the peer's is given."""

    k, seen = 5, "what they had"

    def __init__(self, recalls: list[float], peer: float, *, num_users: int = 3) -> None:
        self._recalls, self._peer, self.num_users = recalls, peer, num_users

    def of_model(self, model: Counting) -> float:
        return self._recalls[model.epochs - 1]

    def of_lists(self, lists: str) -> float:
        assert lists == "top 5 of what they had"
        return self._peer


class Peer:
    def __init__(self) -> None:
        self.fits = 0

    def fit(self) -> None:
        self.fits += 1

    def top(self, seen: str, k: int) -> str:
        assert self.fits > 0
        return f"top {k} of {seen}"


def make_plan(recalls: list[float], **changes: Any) -> Any:
    parts: dict[str, Any] = {
        "settings": {"size": 1},
        "history": Counting(100),
        "profiles": {4: Counting(70), 1000: Counting(70)},
        "climbing": Counting(70),
        "naive": lambda steps: None,
        "naive_steps": 3,
        "naive_batch_size": 8,
        "epochs": len(recalls),
        "judge": Judge(recalls, 0.3),
        "peer": Peer(),
        "peaks": {},
        "rounds": 2,
    }
    return TrainPlan(**parts | changes)


def test_the_time_to_the_recall_is_that_of_the_first_epochs_that_reach_it() -> None:
    asked: list[int] = []

    def peak(epochs: int) -> int:
        asked.append(epochs)
        return 5_000_000

    plan = make_plan([0.1, 0.25, 0.3, 0.28, 0.4], peaks={TO_RECALL: peak})
    result = measure_train(plan)
    assert (result.target, result.reached) == (0.3, 3)
    assert asked == [3]
    assert [point.recall for point in result.points] == [0.1, 0.25, 0.3, 0.28, 0.4]
    seconds = [point.seconds for point in result.points]
    assert seconds == sorted(seconds)
    measured = result.rates.measurements
    assert list(measured) == [HISTORY, NAIVE, *PROFILES, TO_RECALL, PEER]
    assert [(one.units, one.unit) for one in measured.values()] == [
        (100, "examples"),
        (24, "examples"),
        (70, "examples"),
        (70, "examples"),
        (1, "trainings"),
        (1, "fits"),
    ]
    assert all(len(one.seconds) == 2 for one in measured.values())
    assert measured[TO_RECALL].peak_bytes == 5_000_000
    assert measured[HISTORY].peak_bytes is None
    pairs = [(ratio.first, ratio.second) for ratio in result.rates.ratios]
    assert pairs == [(HISTORY, NAIVE), (TO_RECALL, PEER)]
    # Once to be judged, then unmeasured and for two rounds; three epochs each but the first.
    assert plan.climbing.begun == 4
    assert [plan.history.epochs, *(one.epochs for one in plan.profiles.values())] == [3, 3, 3]


def test_a_recall_that_is_not_reached_is_not_timed() -> None:
    result = measure_train(make_plan([0.1, 0.29]))
    assert (result.target, result.reached) == (0.3, None)
    assert TO_RECALL not in result.rates.measurements
    assert [(ratio.first, ratio.second) for ratio in result.rates.ratios] == [(HISTORY, NAIVE)]
    assert "stays below implicit's recall@5 of 0.3000: at best 0.2900" in result.sentence()


def test_without_a_peer_there_is_no_recall_to_reach() -> None:
    result = measure_train(make_plan([0.1, 0.2], peer=None))
    assert (result.target, result.reached) == (None, None)
    assert list(result.rates.measurements) == [HISTORY, NAIVE, *PROFILES]
    assert result.sentence() == "Recall@5 of the profile tower: 0.2000; there is no peer's."


def test_without_held_out_users_rates_are_all_there_is(tmp_path: Path) -> None:
    result = measure_train(make_plan([0.1], judge=Judge([0.1], 0.3, num_users=0)))
    assert (result.points, result.target) == ((), None)
    assert result.sentence() == "Nobody was held out, so that no recall is measured."
    assert [path.name for path in write_train_plots(result, tmp_path)] == ["train_rates.png"]


@pytest.fixture
def result() -> TrainResult:
    return measure_train(make_plan([0.1, 0.31, 0.35]))


def test_what_is_reached_is_said_in_a_sentence(result: TrainResult) -> None:
    assert result.sentence() == (
        "The profile tower passes implicit's recall@5 of 0.3000 with 0.3100 after epoch 2; at best "
        "it has 0.3500."
    )


def test_the_recall_by_epoch_is_written_and_drawn(result: TrainResult, tmp_path: Path) -> None:
    write_train(result, tmp_path / "train.json")
    written = json.loads((tmp_path / "train.json").read_text())
    assert (written["k"], written["target"], written["reached"]) == (5, 0.3, 2)
    assert [point["recall"] for point in written["points"]] == [0.1, 0.31, 0.35]
    paths = write_train_plots(result, tmp_path)
    assert [path.name for path in paths] == ["train_rates.png", "train_recall.png"]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")
