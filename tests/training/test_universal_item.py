"""What the correction does to one item that every user takes, by a real training.

160 users in 4 groups; each takes the universal item and 5 of the 20 items of the own group, such
that all but the universal item are taken equally often. The user tower reads the group alone, so
what it is trained towards can be written down. Within a group ``P(universal) = 1/6`` and, of the
group's own items, ``P(item) = 5/6 / 20 = 1/24``. Of all positives an item has the share
``5/6 / 80 = 1/96``, the universal one again 1/6: that is q.

Ranks. With log Q the scores tend to ``log P``, and the universal item leads every list. Without it
they tend to ``log(P / q)``: ``log 1`` for the universal item and ``log 4`` for the 20 items of the
own group, all of which stand before it.

The gap from the universal item's score to that of an item of the own group:

- log 4 by ``log P``: with the refined form, and with the standard one where hits stay.
- Where hits leave, the standard form ends elsewhere. In a large batch the gradient of a positive t
  is ``(p - 1[t]) / (1 - p(t))``, and its mean over t is 0 where, at the universal item,
  ``p(universal) * 5/6 / (1 - p(item)) = 1/6``. With ``p(universal) = 1 - 20 p(item)`` that is
  p(item) = 4/99 and p(universal) = 19/99: the gap is log(19/4).
- Without log Q the gap is that of the same form with log Q, less ``log(1/6) - log(1/96) = log 16``.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recsys

NUM_GROUPS, GROUP_SIZE, USERS_PER_GROUP = 4, 20, 40
NUM_ITEMS = NUM_GROUPS * GROUP_SIZE + 1
OFFSETS = (0, 1, 4, 9, 11)  # user i takes items i + offset of the group, round its end


def make_log() -> pd.DataFrame:
    rows = [
        (f"g{group}u{user}", item)
        for group in range(NUM_GROUPS)
        for user in range(USERS_PER_GROUP)
        for item in ["universal"]
        + [f"g{group}i{(user + offset) % GROUP_SIZE}" for offset in OFFSETS]
    ]
    return pd.DataFrame(rows, columns=["user_id", "item_id"])


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pd.DataFrame]:
    """Give a function that trains with a loss and ranks all items for all users."""
    folder = tmp_path_factory.mktemp("universal")
    log = make_log()
    log.to_parquet(folder / "train.parquet")
    users = log[["user_id"]].drop_duplicates()
    users.assign(group=users["user_id"].str[:2]).to_parquet(folder / "users.parquet")

    def run(run_dir: Path, log_q: str, *, hits_leave: bool) -> pd.DataFrame:
        trained = recsys.train(
            {
                "dataset": "table",
                "split": "given",
                "dataset.prepared_root": str(folder / "prepared"),
                "dataset.train": str(folder / "train.parquet"),
                "dataset.users": str(folder / "users.parquet"),
                "features": "none",
                "+features.users.group": "categorical",
                "model.embedding_dim": 8,
                "model.user_tower.history.encoder": "none",
                "model.feature_dropout": 0.0,
                "model.item_tower.id_dropout": 0.0,
                "loss": "in_batch",
                "loss.log_q": log_q,
                "loss.mask_accidental_hits": hits_leave,
                "optimizer.learning_rate": 0.1,
                "trainer.epochs": 20,
                "trainer.batch_size": 64,
                "trainer.patience": 0,
                "index": "flat",
                "threads": 1,
                "tracking": "none",
                "run_dir": str(run_dir),
            }
        )
        lookup = recsys.load_bundle(trained.bundle)
        lists: pd.DataFrame = lookup.recommend(k=NUM_ITEMS, exclude_seen=False).to_pandas()
        assert len(lists) == NUM_GROUPS * USERS_PER_GROUP * NUM_ITEMS
        return lists

    return run


def test_every_item_but_one_is_taken_equally_often() -> None:
    counts = make_log()["item_id"].value_counts()
    assert counts.pop("universal") == NUM_GROUPS * USERS_PER_GROUP
    assert counts.tolist() == [10] * (NUM_ITEMS - 1)


def gap_to_own_group(lists: pd.DataFrame) -> float:
    """Give the mean over users of the universal item's score less that of the own group's items."""
    own = lists[lists["item_id"].str[:2] == lists["user_id"].str[:2]]
    universal = lists[lists["item_id"] == "universal"].set_index("user_id")
    return float(np.mean(universal["score"] - own.groupby("user_id")["score"].mean()))


@pytest.mark.parametrize(
    ("log_q", "hits_leave", "rank", "gap"),
    [
        ("standard", True, 1, math.log(19 / 4)),
        ("standard", False, 1, math.log(4)),
        ("refined", True, 1, math.log(4)),
        ("none", True, 1 + GROUP_SIZE, math.log(19 / 4) - math.log(16)),
        ("none", False, 1 + GROUP_SIZE, math.log(4) - math.log(16)),
    ],
)
def test_the_item_that_everyone_takes_ranks_as_the_correction_says(
    train: Callable[..., pd.DataFrame],
    tmp_path: Path,
    log_q: str,
    hits_leave: bool,
    rank: int,
    gap: float,
) -> None:
    lists = train(tmp_path / "run", log_q, hits_leave=hits_leave)
    ranks = lists.loc[lists["item_id"] == "universal", "rank"]
    assert (ranks == rank).mean() > 0.95
    # log 4 = 1.386 and log(19/4) = 1.558 lie 0.172 apart.
    assert gap_to_own_group(lists) == pytest.approx(gap, abs=0.085)
