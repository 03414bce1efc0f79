"""Batches of whole users: what an epoch emits, what a query knows, resumption."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import (
    NO_TIME,
    Events,
    FeatureOptions,
    FeatureSchema,
    FeatureTable,
    ProfileBatches,
    TrainingBatch,
)
from recsys.foundations import ArgumentError
from recsys.sampling import ExactPopularity

# users of a log; event i is of item i and of time i
LOGS = st.lists(st.integers(0, 6), min_size=1, max_size=40)


def make_events(users: list[int], *, weighted: bool = False) -> Events:
    size = len(users)
    weights = np.arange(size, dtype=np.float32) if weighted else None
    return Events(
        np.sort(np.array(users, np.int64)),
        np.arange(size),
        np.arange(size),
        weights,
        FeatureTable.missing(FeatureSchema(), size),
    )


def make_batches(events: Events, **changes: Any) -> ProfileBatches:
    settings: dict[str, Any] = {
        "clock": "time",
        "history_length": 3,
        "batch_size": 2,
        "drop_last": False,
        "seed": 0,
    }
    return ProfileBatches(events, **settings | changes)


@given(log=LOGS, length=st.integers(1, 6), size=st.integers(1, 9), epoch=st.integers(0, 3))
def test_each_user_comes_once_with_all_events_as_positives_and_the_newest_as_history(
    log: list[int], length: int, size: int, epoch: int
) -> None:
    events = make_events(log)
    users, positives = [], []
    for batch in make_batches(events, history_length=length, batch_size=size).epoch(epoch):
        assert batch.query_rows is not None
        assert len(batch.users) <= size
        assert batch.histories.shape[1] <= length
        users += batch.users.tolist()
        positives += batch.positives.tolist()
        for query, user in enumerate(batch.users):
            mine = np.flatnonzero(events.users == user)
            assert batch.positives[batch.query_rows == query].tolist() == mine.tolist()
            history = batch.histories[query]
            assert history[history >= 0].tolist() == mine[::-1][:length].tolist()
            assert np.all(np.diff(np.int64(history >= 0)) <= 0)  # padding stands at the end
    assert sorted(users) == sorted(set(log))
    assert sorted(positives) == list(range(len(log)))


def test_a_batch_worked_by_hand() -> None:
    events = make_events([3, 3, 3, 3, 5])
    [batch] = make_batches(events).epoch(0)
    first = int(np.flatnonzero(batch.users == 3)[0])
    assert batch.times is not None
    assert batch.query_rows is not None
    assert batch.histories[first].tolist() == [3, 2, 1]
    assert batch.histories[1 - first].tolist() == [4, -1, -1]
    assert batch.times[1 - first].tolist() == [4, NO_TIME, NO_TIME]
    assert batch.positive_users.tolist() == batch.users[batch.query_rows].tolist()
    assert batch.newest_items().tolist() == batch.histories[:, 0].tolist()
    [unordered] = make_batches(events, clock="none").epoch(0)
    assert unordered.times is None


def test_a_query_of_its_own_for_each_positive_knows_what_the_users_query_knows() -> None:
    [batch] = make_batches(make_events([3, 3, 3, 3, 5])).epoch(0)
    apart = batch.by_positive()
    assert batch.query_rows is not None
    assert apart.query_rows is None
    assert apart.users.tolist() == batch.positive_users.tolist()
    assert len(apart.context) == 5
    newest = batch.histories[batch.query_rows, 0].tolist()
    assert apart.newest_items().tolist() == newest
    assert apart.is_grouped
    assert apart.by_positive() is apart


def test_context_of_single_events_is_missing() -> None:
    schema = FeatureSchema.fit(pa.table({"hour": ["1", "2"]}), {"hour": FeatureOptions()})
    events = make_events([0, 0, 1])
    table = schema.encode(pa.table({"hour": ["1", "2", "1"]}))
    events = Events(events.users, events.items, events.timestamps, None, table)
    [batch] = make_batches(events).epoch(0)
    assert np.asarray(batch.context.columns["hour"]).tolist() == [0, 0]
    assert np.asarray(table.columns["hour"]).tolist() != [0, 0, 0]


def test_weights_stay_with_their_positives() -> None:
    for batch in make_batches(make_events([0, 1, 1, 2, 2], weighted=True)).epoch(0):
        assert batch.weights is not None
        assert batch.weights.tolist() == batch.positives.tolist()  # the weight of item i is i


def numbers_of(batch: TrainingBatch) -> list[Any]:
    assert batch.query_rows is not None
    parts = batch.users, batch.positives, batch.histories, batch.query_rows
    return [part.tolist() for part in parts]


@given(log=LOGS, first=st.integers(0, 5), epoch=st.integers(0, 2))
def test_an_epoch_taken_up_at_a_batch_goes_on_with_the_same_batches(
    log: list[int], first: int, epoch: int
) -> None:
    events = make_events(log)
    whole = list(make_batches(events).epoch(epoch))
    rest = make_batches(events).epoch(epoch, first_batch=first)
    assert [numbers_of(batch) for batch in rest] == [numbers_of(b) for b in whole[first:]]


@given(log=LOGS, size=st.integers(1, 5), drop_last=st.booleans())
def test_the_batches_of_several_epochs_are_counted_exactly(
    log: list[int], size: int, drop_last: bool
) -> None:
    batches = make_batches(make_events(log), batch_size=size, drop_last=drop_last)
    emitted = [batch for epoch in range(3) for batch in batches.epoch(epoch)]
    assert batches.count_batches(3) == len(emitted)
    assert batches.num_rows == len(log)
    assert not drop_last or all(len(batch.users) == size for batch in emitted)


def test_the_order_depends_on_seed_and_epoch() -> None:
    events = make_events([user for user in range(30) for _ in range(2)])

    def order(seed: int, epoch: int) -> tuple[int, ...]:
        batches = make_batches(events, seed=seed).epoch(epoch)
        return tuple(user for batch in batches for user in batch.users.tolist())

    assert order(0, 0) == order(0, 0)
    assert len({order(*key) for key in ((0, 0), (0, 1), (1, 0), (1, 1))}) == 4


def test_the_stated_q_is_the_rate_at_which_an_epoch_emits_an_item() -> None:
    rng = np.random.default_rng(0)
    events = make_events(rng.integers(0, 9, 400).tolist())
    events = Events(events.users, rng.zipf(1.5, 400) % 12, None, None, events.context)
    batches = make_batches(events, clock="none").epoch(3)
    emitted = Counter(item for batch in batches for item in batch.positives.tolist())
    popularity = ExactPopularity(np.bincount(events.items, minlength=13))
    rows = torch.tensor(sorted(emitted))
    stated = popularity.log_rate(rows, 64).exp() / 64
    assert stated.tolist() == pytest.approx([emitted[row] / 400 for row in sorted(emitted)])


@pytest.mark.parametrize("name", ["batch_size", "history_length"])
def test_refuses_a_size_of_zero(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"`{name}` must be above 0, got 0"):
        make_batches(make_events([0]), **{name: 0})
