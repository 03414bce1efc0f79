"""A bonus for own items through the stages: chosen, reported, recommended, compared, resumed."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.baselines import baselines
from pipelines.train import train
from recsys.bundle import Bundle, read_bundle
from recsys.config import BaselinesConfig, TrainConfig, compose_config
from recsys.evaluation import embed_queries
from recsys.serving.ids import as_ids
from recsys.serving.known_users import KnownUsers

NUM_USERS, NUM_ITEMS, EVENTS, LENGTH = 300, 120, 16, 10
PAIRS = {"model.repeats.weight": [0, 0.5, 2, 8], "model.repeats.decay": [0.6, 1.0]}
Train = Callable[..., Path]


def make_log(*, again: float) -> pd.DataFrame:
    """Make users who take an item by its popularity, or one of their last four `again`."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(3, NUM_ITEMS + 3)
    shares /= shares.sum()
    rows = []
    for user in range(NUM_USERS):
        taken: list[int] = []
        for step in range(EVENTS):
            fresh, repeats = int(rng.choice(NUM_ITEMS, p=shares)), rng.random() < again
            taken.append(int(rng.choice(taken[-4:])) if taken and repeats else fresh)
            rows.append((f"u{user}", f"i{taken[-1]}", 1_600_000_000 + 86_400 * step + user))
    return pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"])


@dataclass(frozen=True)
class Run:
    folder: Path
    bundle: Bundle

    @property
    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "report.json").read_text()))

    @property
    def chosen(self) -> tuple[float, float]:
        spec = self.bundle.model.spec
        return spec.repeats_weight, spec.repeats_decay


@pytest.fixture(scope="module")
def train_on(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Give a function that trains on a log of a name, into a folder of a name."""
    root = tmp_path_factory.mktemp("repeats_bonus")
    make_log(again=0.5).to_csv(root / "habits.csv", index=False)
    make_log(again=0.0).to_csv(root / "noise.csv", index=False)

    def run(name: str, log: str = "habits", **settings: Any) -> Run:
        fixed: dict[str, Any] = {
            "dataset": "table",
            "dataset.interactions": str(root / f"{log}.csv"),
            "dataset.prepared_root": str(root / "prepared"),
            "dataset.exclude_seen": False,
            "split": "leave_last_out",
            "model.embedding_dim": 8,
            "model.item_bias": True,
            "model.item_bias_start": "log_popularity",
            "model.user_tower.history.length": LENGTH,
            "loss": "full_softmax",
            "trainer.epochs": 3,
            "trainer.batch_size": 128,
            "trainer.patience": 0,
            "evaluation.k": [5, 10],
            "evaluation.popularity_alphas": [1.0],
            "evaluation.num_bootstrap": 20,
            "tracking": "none",
            "threads": 1,
            "run_dir": str(root / name),
        }
        settings = {key.replace("__", "."): value for key, value in settings.items()}
        config = compose_config("train", TrainConfig, fixed | PAIRS | settings)
        return Run(root / name, read_bundle(train(config, root / name)))

    return run


@pytest.fixture(scope="module")
def habits(train_on: Callable[..., Run]) -> Run:
    return train_on("habits")


def slow_lists(run: Run, histories: dict[str, list[str]], k: int, alpha: float) -> pd.DataFrame:
    """Rank the whole catalogue for each user by score, bonus and dial."""
    bundle, (weight, decay) = run.bundle, run.chosen
    users, items = list(histories), bundle.items.vocabulary
    queries = KnownUsers(bundle).queries(as_ids(users), histories=None, features=None, context=None)
    vectors = embed_queries(bundle.model, queries).astype(np.float64)
    scores = vectors @ np.asarray(bundle.item_vectors, np.float64).T
    shares = bundle.item_counts / bundle.item_counts.sum()
    rows = []
    for user, row in zip(users, scores, strict=True):
        counts = np.zeros(len(row))
        for age, item in enumerate(histories[user][::-1][:LENGTH]):
            counts[items.rows([item])[0]] += decay**age
        final = row + weight * np.log(1 + counts) - alpha * np.log(shares)
        best = np.argsort(-final, kind="stable")[:k]
        names = items.ids_of(best).to_pylist()
        rows += [(user, name, score) for name, score in zip(names, final[best], strict=True)]
    return pd.DataFrame(rows, columns=["user_id", "item_id", "score"])


def recall_of(lists: pd.DataFrame, truth: pd.DataFrame) -> float:
    given = lists.groupby("user_id")["item_id"].agg(set)
    right = truth.groupby("user_id")["item_id"].agg(set)
    return float(np.mean([len(one & given[str(user)]) / len(one) for user, one in right.items()]))


def test_where_users_repeat_themselves_a_bonus_is_chosen_and_helps(
    train_on: Callable[..., Run],
) -> None:
    run = train_on("one_epoch", trainer__epochs=1)
    weight, decay = run.chosen
    assert weight > 0
    report = run.report
    assert report["about"]["repeats"] == {"weight": weight, "decay": decay}
    without = train_on("without", model__repeats__weight=0, trainer__epochs=1)
    assert without.chosen == (0.0, 1.0)
    assert "repeats" not in without.report["about"]
    # The towers are the same: no step sees it, nor does the likelihood.
    np.testing.assert_array_equal(run.bundle.item_vectors, without.bundle.item_vectors)
    assert report["likelihood"] == without.report["likelihood"]
    assert report["metrics"]["recall_at_5"] > without.report["metrics"]["recall_at_5"] + 0.03
    both = {"model__repeats__weight": weight, "model__repeats__decay": decay}
    fixed = train_on("fixed", trainer__epochs=1, **both)
    assert fixed.report["metrics"] == report["metrics"]
    assert fixed.bundle.bundle_id == run.bundle.bundle_id


def test_where_repeats_are_noise_none_is(train_on: Callable[..., Run]) -> None:
    run = train_on("noise", "noise")
    assert run.chosen == (0.0, 1.0)
    assert run.bundle.scores["validation"]["repeats_weight"] == 0


def test_report_lists_and_a_slow_ranking_agree(
    habits: Run, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    dataset, report = dataset_of(habits.bundle.path), habits.report
    truth = events_of(dataset, "test")
    before = pd.concat([events_of(dataset, part) for part in ("train", "validation")])
    histories = before.sort_values("timestamp").groupby("user_id")["item_id"].agg(list).to_dict()
    for alpha in (0.0, 1.0):
        slow = slow_lists(habits, histories, 10, alpha)
        lists = recommend_to(
            tmp_path / f"{alpha}.parquet", habits.bundle.path, k=10, popularity_alpha=alpha
        )
        both = lists.merge(slow, on=["user_id", "item_id"], suffixes=("", "_slow"))
        assert len(both) >= 0.999 * len(lists)  # equal scores may swap at the cut
        np.testing.assert_allclose(both["score"], both["score_slow"], atol=1e-4)
        [point] = [one for one in report["popularity_dial"] if one["alpha"] == alpha]
        recall = recall_of(lists, truth)
        assert recall == pytest.approx(point["metrics"]["recall_at_10"], abs=1e-12)
    assert report["popularity_dial"][0]["alpha"] == 0
    recall = report["popularity_dial"][0]["metrics"]["recall_at_10"]
    assert recall == report["metrics"]["recall_at_10"]
    assert recall == report["through_index"]["metrics"]["recall_at_10"]  # flat: exact
    assert report["through_index"]["metrics"]["index_recall_at_10"] == 1


def test_baselines_and_a_later_evaluation_find_the_same_recall(
    habits: Run, tmp_path: Path, run_evaluate: Any
) -> None:
    settings = {
        "bundle": str(habits.bundle.path),
        "systems": ["own_items"],
        "evaluation.k": [5, 10],
        "evaluation.num_bootstrap": 20,
        "threads": 1,
        "run_dir": str(tmp_path / "baselines"),
    }
    cfg = compose_config("baselines", BaselinesConfig, settings)
    systems = baselines(cfg, tmp_path / "baselines").systems
    expected = habits.report["metrics"]["recall_at_10"]
    assert systems["model"].metrics["recall_at_10"].value == pytest.approx(expected, abs=1e-12)
    report = run_evaluate(tmp_path / "evaluate", bundle=str(habits.bundle.path), k=[5, 10])
    assert report["about"]["repeats"] == habits.report["about"]["repeats"]
    assert report["metrics"]["recall_at_10"] == expected


def test_a_resumed_run_ends_with_the_same_bytes(habits: Run, train_on: Callable[..., Run]) -> None:
    train_on("halted", trainer__epochs=1)
    assert train_on("halted", resume=True).bundle.bundle_id == habits.bundle.bundle_id


def test_a_warm_start_is_measured_with_the_bundles_bonus_and_chooses_its_own(
    habits: Run, train_on: Callable[..., Run]
) -> None:
    before = habits.report["metrics"]["recall_at_10"]
    for name, weight in (("warm", PAIRS["model.repeats.weight"]), ("warm_0", 0)):
        run = train_on(
            name,
            init_from=str(habits.bundle.path),
            model__repeats__weight=weight,
            trainer__epochs=1,
        )
        report = run.report["warm_start"]
        assert report["before"]["test"]["recall_at_10"] == pytest.approx(before, abs=1e-12)
        after = report["after"]["test"]["recall_at_10"]
        assert after == pytest.approx(run.report["metrics"]["recall_at_10"], abs=1e-12)
        assert (run.chosen[0] > 0) is (name == "warm")


def test_where_seen_items_are_left_out_nothing_is_chosen_or_changed(
    train_on: Callable[..., Run],
) -> None:
    options: dict[str, Any] = {"dataset__exclude_seen": True, "trainer__epochs": 1}
    listed = train_on("seen", **options)
    assert listed.chosen == (0.0, 1.0)
    assert "repeats_weight" not in listed.bundle.scores["validation"]
    single = train_on("seen_single", model__repeats__weight=5.0, **options)
    assert single.bundle.bundle_id == listed.bundle.bundle_id
    # Nor has who asks for them all the same a bonus.
    assert single.bundle.model.repeats is None


def test_a_tower_without_a_history_has_no_bonus(train_on: Callable[..., Run]) -> None:
    run = train_on(
        "ids",
        model__user_tower__history__encoder="none",
        model__user_tower__use_id=True,
        trainer__epochs=1,
    )
    assert run.chosen == (0.0, 1.0)
