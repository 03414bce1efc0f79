"""Repeat consumption, `dataset.exclude_seen=false`, from the log to what is recommended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import TrainConfig, compose_config
from recsys.data import PreparedDataset, read_prepared
from recsys.serving import Lookup

NUM_USERS, NUM_ITEMS, EVENTS = 150, 80, 24
HISTORY = "model.user_tower.history"


def make_log() -> pd.DataFrame:
    """Make users who take one of their last two items again, three times out of four."""
    rng = np.random.default_rng(0)
    rows = []
    for user in range(NUM_USERS):
        taken: list[int] = []
        for step in range(EVENTS):
            fresh, again = int(rng.integers(NUM_ITEMS)), rng.random() < 0.75
            taken.append(int(rng.choice(taken[-2:])) if taken and again else fresh)
            rows.append((f"u{user}", f"i{taken[-1]}", 1_600_000_000 + 86_400 * step + user))
    return pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"])


@pytest.fixture(scope="module")
def train_on(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Lookup]:
    """Give a function that trains on the log and loads the bundle; the same settings once."""
    folder = tmp_path_factory.mktemp("repeats")
    make_log().to_csv(folder / "log.csv", index=False)
    loaded: dict[str, Lookup] = {}

    def run(name: str, **settings: Any) -> Lookup:
        if name not in loaded:
            fixed: dict[str, Any] = {
                "dataset": "table",
                "dataset.interactions": str(folder / "log.csv"),
                "dataset.prepared_root": str(folder / "prepared"),
                "dataset.exclude_seen": False,
                "split": "leave_last_out",
                "model.embedding_dim": 32,
                f"{HISTORY}.table": "shared",
                f"{HISTORY}.decay": 0.5,  # the last two count
                "optimizer.learning_rate": 0.1,
                "loss.num_sampled": 64,
                "trainer.epochs": 12,
                "trainer.batch_size": 128,
                "trainer.patience": 0,
                "evaluation.k": [3],
                "evaluation.num_bootstrap": 10,
                "tracking": "none",
                "threads": 1,
                "run_dir": str(folder / name),
            }
            config = compose_config("train", TrainConfig, fixed | settings)
            loaded[name] = Lookup(read_bundle(train(config, folder / name)))
        return loaded[name]

    return run


@pytest.fixture
def history_tower(train_on: Callable[..., Lookup]) -> Lookup:
    return train_on("history")


def dataset_of(lookup: Lookup) -> PreparedDataset:
    return read_prepared(Path(lookup.bundle.manifest["provenance"]["dataset_dir"]))


def recall_of_repeats(lookup: Lookup, k: int = 3) -> float:
    """Measure by the lists that are recommended: of test items the user had, the share found."""
    dataset, log = dataset_of(lookup), make_log()
    log["rank"] = log.groupby("user_id").cumcount()
    last = log[log["rank"] == EVENTS - 1].set_index("user_id")["item_id"]
    before = log[log["rank"] < EVENTS - 1].groupby("user_id")["item_id"].agg(set)
    lists = lookup.recommend(k=k).to_pandas().groupby("user_id")["item_id"].agg(set)
    found = [
        item in lists[user]
        for user, item in zip(last.index.astype(str), last, strict=True)
        if item in before[user]
    ]
    assert len(dataset.test) == NUM_USERS
    assert len(found) > NUM_USERS / 2
    return float(np.mean(found))


def test_every_event_is_kept_and_repeats_stand_in_the_histories(history_tower: Lookup) -> None:
    dataset, log = dataset_of(history_tower), make_log()
    assert len(dataset.train) + len(dataset.validation) + len(dataset.test) == len(log)
    bundle = history_tower.bundle
    user = bundle.users.vocabulary.ids.to_pylist().index("u7")
    stored = bundle.items.vocabulary.ids_of(bundle.histories[user]).to_pylist()
    assert stored == log[log["user_id"] == "u7"]["item_id"].tolist()[:-1]
    assert len(set(stored)) < len(stored)


def test_a_tower_with_a_history_finds_more_repeats_than_one_without(
    train_on: Callable[..., Lookup], history_tower: Lookup
) -> None:
    # Who repeats chooses among the last two, and both stand in a good list of 3. Without a history
    # the tower knows at best what a user has had, and not what came last.
    without = train_on("ids", **{f"{HISTORY}.encoder": "none", "model.user_tower.use_id": True})
    found = recall_of_repeats(history_tower)
    assert found > recall_of_repeats(without) + 0.15
    assert found > 0.75


def test_masking_known_positives_leaves_repeats_to_be_found(
    train_on: Callable[..., Lookup],
) -> None:
    # The user's own items are then no negatives, and the positive is often one of them.
    masked = train_on("masked", **{"loss.mask_known_positives": True})
    assert recall_of_repeats(masked) > 0.75


def test_the_report_and_the_lists_hold_what_users_had(history_tower: Lookup) -> None:
    scores = history_tower.bundle.scores
    assert scores["test"]["num_seen_positives"] == 0  # none is out of reach
    # The validation item, too, is in three cases of four one of the last two.
    assert scores["validation"]["recall_at_10"] > 0.5
    log = make_log().groupby("user_id")["item_id"].agg(list)
    mine = set(log["u7"][:-1])
    shown = history_tower.recommend(["u7"], k=5)["item_id"].to_pylist()
    assert set(shown) & mine
    fresh = history_tower.recommend(["u7"], k=5, exclude_seen=True)["item_id"].to_pylist()
    assert not set(fresh) & mine


def test_new_users_are_recommended_again_what_the_given_histories_hold(
    history_tower: Lookup,
) -> None:
    pairs = [(f"i{item}", f"i{item + 1}") for item in range(0, 40, 2)]
    histories = {f"stranger{n}": [*pair, *pair] for n, pair in enumerate(pairs)}
    shown = history_tower.recommend(k=3, histories=histories).to_pandas()
    lists = shown.groupby("user_id")["item_id"].agg(set)
    found = [len(lists[f"stranger{n}"] & set(pair)) for n, pair in enumerate(pairs)]
    # By chance three places of a list hold an item with probability 3 / NUM_ITEMS, below 0.04.
    assert np.mean(found) / 2 > 0.5
