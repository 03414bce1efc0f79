"""Events mapped from their files: what was in memory, never written to, safe beyond int32."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from recsys.baselines import Interactions
from recsys.data import (
    EventBatches,
    Events,
    FeatureOptions,
    FeatureSchema,
    FeatureTable,
    ProfileBatches,
    SequenceBatches,
    TrainingBatch,
    consecutive_pairs,
    map_events,
    weigh_by_user,
    write_events,
)
from recsys.foundations import FormatError, Ragged

NUM_USERS = 40


def make_events(
    *, num_rows: int = 300, weighted: bool = True, timed: bool = True, seed: int = 0
) -> Events:
    rng = np.random.default_rng(seed)
    users = np.sort(rng.integers(0, NUM_USERS - 5, num_rows))  # the last users have none
    table = {
        "hour": [f"at {hour}" for hour in rng.integers(0, 24, num_rows)],
        "tags": [[f"t{tag}" for tag in range(row % 3)] for row in range(num_rows)],
        "place/of": rng.random((num_rows, 2)).tolist(),  # no name for a file
    }
    options = {
        "hour": FeatureOptions(kind="categorical"),
        "tags": FeatureOptions(kind="multi"),
        "place/of": FeatureOptions(kind="vector"),
    }
    context = FeatureSchema.fit(pa.table(table), options).encode(pa.table(table))
    times = np.concatenate([np.sort(rng.integers(0, 9, n)) for n in np.bincount(users)])
    return Events(
        users.astype(np.int32),
        rng.integers(0, 20, num_rows).astype(np.int32),
        times if timed else None,
        rng.random(num_rows).astype(np.float32) if weighted else None,
        context,
    )


def write_and_map(folder: Path, events: Events) -> Events:
    write_events(folder / "train", events, NUM_USERS)
    return map_again(folder, events)


def map_again(folder: Path, events: Events) -> Events:
    return map_events(
        folder / "train",
        events.context.schema,
        files=[path.name for path in (folder / "columns" / "train").iterdir()],
        num_events=len(events),
        num_users=NUM_USERS,
    )


def arrays_of(events: Events) -> dict[str, np.ndarray]:
    """Give all arrays by name."""
    named: dict[str, Any] = {
        name: getattr(events, name) for name in ("users", "items", "timestamps", "weights")
    }
    for name, column in events.context.columns.items():
        if isinstance(column, Ragged):
            named |= {f"{name}, rows": column.rows, f"{name}, offsets": column.offsets}
        else:
            named[name] = column
    return {name: array for name, array in named.items() if array is not None}


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("num_rows", [0, 300])
def test_what_is_mapped_is_what_was_in_memory_and_cannot_be_written(
    tmp_path: Path, weighted: bool, timed: bool, num_rows: int
) -> None:
    events = make_events(num_rows=300, weighted=weighted, timed=timed).slice(0, num_rows)
    mapped = write_and_map(tmp_path, events)
    wanted, found = arrays_of(events), arrays_of(mapped)
    assert sorted(found) == sorted(wanted)
    for name, array in found.items():
        assert_array_equal(array, wanted[name])
        assert array.dtype == wanted[name].dtype
        assert is_mapped(array)
        assert not array.flags.writeable
    assert mapped.offsets is not None
    counts = np.bincount(events.users, minlength=NUM_USERS)
    assert np.diff(mapped.offsets).tolist() == counts.tolist()


def test_parquet_holds_the_same_rows(tmp_path: Path) -> None:
    events = make_events()
    mapped = write_and_map(tmp_path, events)
    table = pq.read_table(tmp_path / "train" / "part-00000.parquet")
    columns = {"user": "users", "item": "items", "timestamp": "timestamps", "weight": "weights"}
    for name, field in columns.items():
        assert_array_equal(table[name].to_numpy(), getattr(mapped, field))
    assert table["context_tags"].to_pylist() == [
        mapped.context.columns["tags"][row].tolist() for row in range(len(events))
    ]


def test_rows_that_are_mapped_already_can_be_written_again(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first = write_and_map(tmp_path, make_events())
    second = write_and_map(tmp_path / "again", first)
    for name, array in arrays_of(second).items():
        assert_array_equal(array, arrays_of(first)[name])


def values_of(batch: TrainingBatch) -> list[Any]:
    fields = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    arrays = [field.tolist() for field in fields if isinstance(field, np.ndarray)]
    return [*arrays, *(None for field in fields if field is None)]


@pytest.mark.parametrize("source", [EventBatches, SequenceBatches, ProfileBatches])
@pytest.mark.parametrize("clock", ["time", "none"])
def test_batches_of_mapped_events_are_those_of_events_in_memory(
    tmp_path: Path, source: Any, clock: str
) -> None:
    if source is SequenceBatches and clock == "none":
        pytest.skip("sequences need an order")
    events = make_events()
    mapped = write_and_map(tmp_path, events)
    settings = {"clock": clock, "history_length": 4, "batch_size": 16, "seed": 1, "drop_last": True}
    if source is not ProfileBatches:
        settings["ties"] = "exclude"
    wide = dataclasses.replace(events, users=events.users.astype(np.int64))
    for epoch in (0, 1):
        made = [values_of(batch) for batch in source(mapped, **settings).epoch(epoch)]
        assert made == [values_of(batch) for batch in source(wide, **settings).epoch(epoch)]
    for batch in source(mapped, **settings).epoch(0):
        for array in (batch.users, batch.positives, batch.histories):
            assert array.dtype == np.int64
            assert array.flags.writeable
    assert_array_equal(mapped.items, events.items)  # nothing was written


def test_what_is_computed_of_the_whole_log_is_the_same_of_mapped_events(tmp_path: Path) -> None:
    events = make_events()
    mapped = write_and_map(tmp_path, events)
    for one, other in zip(
        consecutive_pairs(mapped, "time", "exclude"),
        consecutive_pairs(events, "time", "exclude"),
        strict=True,
    ):
        assert_array_equal(one, other)
        assert one.dtype == np.int64  # pairs are numbered as previous * num_items + next
    weights = weigh_by_user(mapped, 0.5).weights
    assert_array_equal(weights, weigh_by_user(events, 0.5).weights)
    joined = Interactions.of([mapped], num_items=20, clock="time")
    assert {joined.users.dtype, joined.items.dtype} == {np.dtype(np.int64)}


@given(num_users=st.integers(1, 60), seed=st.integers(0, 2**16))
def test_offsets_divide_the_events_by_user(num_users: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    users = np.sort(rng.integers(0, num_users, rng.integers(0, 80)))
    context = FeatureTable.missing(FeatureSchema(), len(users))
    events = Events(users, users, None, None, context)
    offsets = events.offsets_of(num_users)
    for user in range(num_users):
        assert_array_equal(users[offsets[user] : offsets[user + 1]], users[users == user])
    stored = dataclasses.replace(events, offsets=offsets)
    fewer = int(users.max(initial=-1)) + 1
    assert_array_equal(stored.offsets_of(), offsets[: fewer + 1])
    assert_array_equal(events.offsets_of(), offsets[: fewer + 1])
    more = stored.offsets_of(num_users + 3)
    assert more.tolist() == [*offsets, *[len(users)] * 3]


def test_what_is_counted_in_blocks_is_right_beyond_one_block() -> None:
    num_rows = 4_500_000
    users = np.repeat(np.arange(num_rows // 9, dtype=np.int32), 9)
    items = (np.arange(num_rows) % 9).astype(np.int32)
    events = Events(users, items, None, None, FeatureTable.missing(FeatureSchema(), num_rows))
    assert_array_equal(events.offsets_of(), np.arange(0, num_rows + 1, 9))
    weights = weigh_by_user(events, 1.0).weights  # all users are alike: all weights stay 1
    assert weights is not None
    assert_array_equal(weights, np.ones(num_rows, np.float32))
    timed = dataclasses.replace(events, timestamps=np.arange(num_rows))
    previous, following = consecutive_pairs(timed, "time", "include")
    assert_array_equal(np.bincount(previous, minlength=9), [num_rows // 9] * 8 + [0])
    assert_array_equal(following, previous + 1)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("item.npy", np.zeros(299, np.int32), r"its shape is \(299,\), not \(300,\)"),
        ("item.npy", np.zeros(300, np.int64), "it holds no 1-d array of int32"),
        ("user.npy", np.zeros((300, 1), np.int32), "it holds no 1-d array of int32"),
        ("offsets.npy", np.zeros(NUM_USERS + 1, np.int64), "does not divide 300 events"),
        ("context_1_offsets.npy", np.zeros(301, np.int64), "does not divide context_1.npy"),
        ("weight.npy", np.array([None, 1]), "not a whole .npy file"),
    ],
)
def test_files_that_do_not_belong_together_are_refused_by_name(
    tmp_path: Path, name: str, values: np.ndarray, words: str
) -> None:
    events = make_events()
    write_events(tmp_path / "train", events, NUM_USERS)
    np.save(tmp_path / "columns" / "train" / name, values, allow_pickle=True)
    with pytest.raises(FormatError, match=words) as error:
        map_again(tmp_path, events)
    assert name in str(error.value)
