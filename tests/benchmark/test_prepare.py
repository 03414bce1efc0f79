"""The logs that preparing is measured on, and the program that it is held against."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recsys.benchmark.prepare_jobs import prepare_log, run_reference, write_log, write_text_log
from recsys.benchmark.prepare_reference import prepare_reference
from recsys.benchmark.process_use import process_use

SIZES = {"num_rows": 3000, "num_users": 100, "num_items": 60}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.parquet"
    write_log(path, seed=0, **SIZES)
    return path


def test_logs_have_hashed_ids_popular_items_and_rising_times(log: Path) -> None:
    table = pq.read_table(log)
    assert (len(table), len(pc.unique(table["user_id"]))) == (3000, 100)
    counts = sorted(entry["counts"] for entry in table["item_id"].value_counts().to_pylist())
    assert len(counts) <= 60
    assert counts[-1] > 4 * np.median(counts)  # by Zipf's law 20 times the middle one
    times = table["timestamp"].to_numpy()
    assert (np.diff(times) >= 0).all()
    assert times[-1] - times[0] < 365 * 86_400
    ids = table["user_id"].to_numpy()
    assert ids.min() < -(2**61)
    assert ids.max() > 2**61


def test_texts_are_the_digits_of_the_numbers(log: Path, tmp_path: Path) -> None:
    write_text_log(tmp_path / "texts.parquet", log)
    numbers, texts = pq.read_table(log), pq.read_table(tmp_path / "texts.parquet")
    for name in ("user_id", "item_id"):
        assert texts[name].to_pylist() == [str(value) for value in numbers[name].to_pylist()]
    assert texts["timestamp"].equals(numbers["timestamp"])


def test_the_reference_program_holds_out_the_last_row_of_each_user(
    log: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    prepare_reference(log, folder)
    found = {
        part: list(
            zip(
                np.fromfile(folder / f"{part}-user_id", np.int32).tolist(),
                np.fromfile(folder / f"{part}-item_id", np.int32).tolist(),
                np.fromfile(folder / f"{part}-timestamp", np.int64).tolist(),
                strict=True,
            )
        )
        for part in ("train", "test")
    }
    users: dict[int, list[tuple[int, int]]] = {}
    codes: dict[str, dict[int, int]] = {"user_id": {}, "item_id": {}}  # by first mention
    for row in pq.read_table(log).to_pylist():
        user, item = (known.setdefault(row[name], len(known)) for name, known in codes.items())
        users.setdefault(user, []).append((item, row["timestamp"]))
    assert found["test"] == [(user, *users[user][-1]) for user in sorted(users)]
    assert found["train"] == [
        (user, *event) for user in sorted(users) for event in users[user][:-1]
    ]


def test_jobs_leave_the_log_alone(log: Path) -> None:
    prepare_log(log, memory_gb=1)
    run_reference(log)
    assert [path.name for path in log.parent.iterdir()] == ["log.parquet"]


def take_memory() -> None:
    assert np.ones(100_000_000, np.int8).sum(dtype=np.int64) == 100_000_000


def test_memory_is_that_of_a_process_of_its_own() -> None:
    use = process_use(take_memory, threads=1)
    assert use.peak_bytes > 100_000_000
    assert min(use.core_seconds, use.seconds) > 0
