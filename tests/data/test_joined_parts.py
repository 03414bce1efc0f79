"""Training and validation as one part, against a sort written out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recsys.data import (
    Entities,
    Events,
    FeatureOptions,
    FeatureSchema,
    FeatureTable,
    PreparedDataset,
    Vocabulary,
    count_validation,
    join_validation,
)
from recsys.foundations import DataError

Row = tuple[int, int, int]  # user, item, time


def entities(counts: list[int]) -> Entities:
    ids = pa.array([str(row) for row in range(len(counts))], pa.large_string())
    missing = FeatureTable.missing(FeatureSchema(), len(counts))
    return Entities(Vocabulary(ids), np.array(counts, np.int64), missing, None)


def events(rows: list[Row], weights: list[float] | None = None, *, timed: bool = True) -> Events:
    """Make sorted events whose context is a category, their time in words, and a list of it."""
    lists = pa.array([[str(time)] * (time % 3) for *_, time in rows], pa.list_(pa.string()))
    table = pa.table({"word": pa.array([str(t) for *_, t in rows], pa.string()), "list": lists})
    schema = FeatureSchema.fit(
        pa.table({"word": [str(t) for t in range(9)], "list": [[str(t)] for t in range(9)]}),
        {"word": FeatureOptions(kind="categorical"), "list": FeatureOptions(kind="multi")},
    )
    users, items, times = np.array(rows, np.int64).reshape(-1, 3).T
    return Events(
        users,
        items,
        times.copy() if timed else None,
        None if weights is None else np.array(weights, np.float32),
        schema.encode(table),
    )


def dataset(train: Events, validation: Events) -> PreparedDataset:
    return PreparedDataset(
        path=Path("made"),
        manifest={},
        users=entities([2, 1, 0]),
        items=entities([1, 1, 1, 0]),
        num_users=2,
        num_items=3,
        clock="time",
        train=train,
        validation=validation,
        test=events([]),
        validation_input=None,
        test_input=None,
        fingerprint="f",
        exclude_seen=True,
    )


TRAIN: list[Row] = [(0, 0, 1), (0, 1, 5), (1, 2, 4)]
# A time before the user's last, one that is equal, a user without a row, an item that is none.
VALIDATION: list[Row] = [(0, 2, 3), (0, 2, 5), (1, 0, 4), (1, 3, 6), (2, 1, 7)]


def test_both_parts_are_one_by_user_and_time_and_counts_say_so() -> None:
    joined = join_validation(dataset(events(TRAIN), events(VALIDATION)))
    train = joined.train
    assert train.timestamps is not None
    expected = [(0, 0, 1), (0, 2, 3), (0, 1, 5), (0, 2, 5), (1, 2, 4), (1, 0, 4), (2, 1, 7)]
    assert list(zip(train.users, train.items, train.timestamps, strict=True)) == expected
    assert joined.users.counts.tolist() == [4, 2, 1]
    assert joined.items.counts.tolist() == [2, 2, 3, 0]
    assert len(joined.validation) == 0
    assert (joined.num_users, joined.num_items, joined.fingerprint) == (2, 3, "f")


def test_events_are_counted_where_the_parts_stay_as_they_are() -> None:
    apart = dataset(events(TRAIN), events(VALIDATION))
    counted = count_validation(apart)
    assert counted.users.counts.tolist() == [4, 2, 1]
    assert counted.items.counts.tolist() == [2, 2, 3, 0]
    assert counted.train is apart.train
    assert counted.validation is apart.validation


def test_the_context_goes_with_its_event() -> None:
    joined = join_validation(dataset(events(TRAIN), events(VALIDATION))).train
    alone = events([(0, 0, 1), (0, 2, 3), (0, 1, 5), (0, 2, 5), (1, 2, 4), (1, 0, 4), (2, 1, 7)])
    for name, column in alone.context.columns.items():
        found = joined.context.columns[name]
        for place in range(7):
            assert np.asarray(found[place]).tolist() == np.asarray(column[place]).tolist()


def test_a_part_without_weights_has_ones_and_without_times_comes_in_its_turn() -> None:
    weighted = join_validation(dataset(events(TRAIN, [0.5, 2, 3]), events(VALIDATION))).train
    assert weighted.weights is not None
    assert weighted.weights.tolist() == [0.5, 1, 2, 1, 3, 1, 1]
    timeless = join_validation(dataset(events(TRAIN), events(VALIDATION, timed=False))).train
    assert timeless.timestamps is None
    assert timeless.items.tolist() == [0, 1, 2, 2, 2, 0, 1]


def test_nothing_to_add_is_said() -> None:
    with pytest.raises(DataError, match="is empty"):
        join_validation(dataset(events(TRAIN), events([])))
    with pytest.raises(DataError, match="holds none of training's items"):
        join_validation(dataset(events(TRAIN), events([(0, 3, 2)])))


def test_of_held_out_users_what_was_known_before_joins_too() -> None:
    held_out = replace(
        dataset(events(TRAIN), events([(2, 1, 9)])),
        validation_input=events([(2, 0, 2), (2, 3, 1), (2, 2, 3)]),
    )
    joined = join_validation(held_out)
    assert joined.train.users.tolist() == [0, 0, 1, 2, 2, 2]
    assert joined.train.items.tolist() == [0, 1, 2, 0, 2, 1]  # item 3 is no candidate
    assert joined.validation_input is None
    assert joined.users.counts.tolist() == count_validation(held_out).users.counts.tolist()
    assert joined.users.counts.tolist() == [2, 1, 3]
