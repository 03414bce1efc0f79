"""What a bundle knows of users under each way of splitting."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle.histories import known_histories, read_histories, write_histories
from recsys.data import (
    FilterSettings,
    PreparedDataset,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.foundations import FormatError


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
    histories, times = known_histories(dataset)
    assert times is not None
    assert dataset.test_input.timestamps is not None
    tested = np.unique(dataset.test.users)
    assert len(tested) > 2
    for user in tested:
        theirs = (dataset.test_input.users == user) & (dataset.test_input.items < dataset.num_items)
        assert histories[user].tolist() == dataset.test_input.items[theirs].tolist()
        assert times[user].tolist() == dataset.test_input.timestamps[theirs].tolist()


def test_without_a_clock_training_stands_before_validation(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", "random", "none")
    histories, times = known_histories(dataset)
    assert times is None
    for user in range(len(dataset.users)):
        parts = (dataset.train, dataset.validation)
        known = np.concatenate([part.items[part.users == user] for part in parts])
        assert histories[user].tolist() == known[known < dataset.num_items].tolist()


@pytest.mark.parametrize("clock", ["time", "order"])
def test_histories_survive_the_disk(tmp_path: Path, clock: str) -> None:
    dataset = make_dataset(tmp_path / "data", "leave_last_out", clock)
    histories, times = known_histories(dataset)
    assert (times is None) == (clock == "order")
    write_histories(tmp_path, histories, times)
    again, when = read_histories(tmp_path, num_users=len(histories), num_items=25, clock=clock)
    assert np.array_equal(again.offsets, histories.offsets)
    assert np.array_equal(again.rows, histories.rows)
    assert again.rows.dtype == np.int32
    if times is None:
        assert when is None
        assert len(np.load(tmp_path / "history_times.npy")) == 0
    else:
        assert when is not None
        assert np.array_equal(when.offsets, histories.offsets)
        assert np.array_equal(when.rows, times.rows)


def test_times_where_the_clock_tells_none_are_refused(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", "temporal", "time")
    histories, times = known_histories(dataset)
    write_histories(tmp_path, histories, times)
    number = len(histories.rows)
    with pytest.raises(FormatError, match=f"holds {number} times, there must be 0"):
        read_histories(tmp_path, num_users=len(histories), num_items=25, clock="order")
