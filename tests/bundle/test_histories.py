"""What a bundle knows of users under each way of splitting."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from recsys.bundle.histories import known_histories, read_histories, write_histories
from recsys.data import (
    FilterSettings,
    PreparedDataset,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)


def make_dataset(path: Path, rule: str, clock: str) -> PreparedDataset:
    rng = np.random.default_rng(3)
    columns = {
        "user_id": pa.array([f"u{n // 10}" for n in range(600)], pa.large_string()),
        "item_id": pa.array([f"i{item}" for item in rng.integers(0, 25, 600)], pa.large_string()),
    }
    if clock != "none":
        columns["timestamp"] = pa.array(1_700_000_000_000_000 + rng.permutation(600))
    log = RawLog(pa.table(columns), clock, {}, 600, [])
    return read_prepared(
        prepare_dataset(
            log,
            items=None,
            users=None,
            output=path,
            filters=FilterSettings(duplicates="keep_all"),
            split=SplitSettings(rule=rule),
            seed=0,
            exclude_seen=True,
        )
    )


def test_held_out_users_are_known_by_their_input(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", "strong_generalization", "time")
    assert dataset.test_input is not None
    histories = known_histories(dataset)
    tested = np.unique(dataset.test.users)
    assert len(tested) > 2
    for user in tested:
        events = dataset.test_input.items[dataset.test_input.users == user]
        assert histories[user].tolist() == events[events < dataset.num_items].tolist()


def test_without_a_clock_training_stands_before_validation(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", "random", "none")
    histories = known_histories(dataset)
    for user in range(len(dataset.users)):
        parts = (dataset.train, dataset.validation)
        known = np.concatenate([part.items[part.users == user] for part in parts])
        assert histories[user].tolist() == known[known < dataset.num_items].tolist()


def test_histories_survive_the_disk(tmp_path: Path) -> None:
    histories = known_histories(make_dataset(tmp_path / "data", "temporal", "time"))
    write_histories(tmp_path, histories)
    again = read_histories(tmp_path, num_users=len(histories), num_items=25)
    assert np.array_equal(again.offsets, histories.offsets)
    assert np.array_equal(again.rows, histories.rows)
    assert again.rows.dtype == np.int32
