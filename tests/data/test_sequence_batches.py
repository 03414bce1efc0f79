"""Windows of users' events against a slow loop; what an epoch emits; resumption."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import (
    NO_TIME,
    Events,
    FeatureSchema,
    FeatureTable,
    SequenceBatches,
    TrainingBatch,
)
from recsys.foundations import ArgumentError
from recsys.sampling import ExactPopularity

# (user, time), ties among them; event i is of item i, so that every event is known by its item
LOGS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=40)
TIES = st.sampled_from(["include", "exclude"])


def make_events(log: list[tuple[int, int]], *, weighted: bool = False) -> Events:
    users, times = (np.array(column, np.int64) for column in zip(*sorted(log), strict=True))
    weights = np.arange(len(log), dtype=np.float32) if weighted else None
    context = FeatureTable.missing(FeatureSchema(), len(log))
    return Events(users, np.arange(len(log)), times, weights, context)


def make_batches(events: Events, **changes: Any) -> SequenceBatches:
    settings: dict[str, Any] = {
        "clock": "time",
        "ties": "include",
        "history_length": 3,
        "batch_size": 2,
        "drop_last": False,
        "seed": 0,
    }
    return SequenceBatches(events, **settings | changes)


def known_to(batch: TrainingBatch) -> Iterator[tuple[int, list[int]]]:
    """Give each positive with the items that its query knows, newest first."""
    assert batch.places is not None
    for item, row, skipped in zip(
        batch.positives.tolist(), batch.places.rows, batch.places.skipped, strict=True
    ):
        known = batch.histories[row, skipped:].tolist()
        size = len(known) - known.count(-1)
        assert -1 not in known[:size]  # padding stands at the end
        yield item, known[:size]


@given(
    log=LOGS, ties=TIES, length=st.integers(1, 6), size=st.integers(1, 9), epoch=st.integers(0, 3)
)
def test_each_event_is_a_positive_once_and_sees_what_its_window_has_before_it(
    log: list[tuple[int, int]], ties: str, length: int, size: int, epoch: int
) -> None:
    events = make_events(log)
    assert events.timestamps is not None
    batches = make_batches(events, ties=ties, history_length=length, batch_size=size)
    emitted = []
    for batch in batches.epoch(epoch):
        assert len(batch.histories) <= size
        assert batch.histories.shape[1] <= length
        for item, known in known_to(batch):
            emitted.append(item)
            stop = item
            if ties == "exclude":
                while stop > 0 and (
                    events.users[stop - 1] == events.users[item]
                    and events.timestamps[stop - 1] == events.timestamps[item]
                ):
                    stop -= 1
            assert known == list(range(stop - 1, stop - 1 - len(known), -1))
            assert all(events.users[other] == events.users[item] for other in known)
    assert sorted(emitted) == list(range(len(log)))


@given(log=LOGS, length=st.integers(1, 6), epoch=st.integers(0, 3))
def test_a_window_begins_where_the_one_before_it_ended_and_is_as_long_as_it_may_be(
    log: list[tuple[int, int]], length: int, epoch: int
) -> None:
    events = make_events(log)
    windows = []
    for batch in make_batches(events, history_length=length).epoch(epoch):
        assert batch.places is not None
        seen = dict(known_to(batch))
        for row in range(len(batch.histories)):
            window = batch.positives[batch.places.rows == row].tolist()
            windows.append(window)
            is_first = window[0] == np.flatnonzero(events.users == events.users[window[0]])[0]
            before = 0 if is_first else 1  # behind a cut, the event before it is known
            assert [len(seen[item]) for item in window] == [before + i for i in range(len(window))]
    for user in set(events.users.tolist()):
        mine = np.flatnonzero(events.users == user).tolist()
        sizes = [len(window) for window in sorted(windows) if window[0] in mine]
        assert sum(sizes) == len(mine)
        if len(mine) <= length + 1:
            assert sizes == [len(mine)]
        else:
            assert 1 <= sizes[0] <= length
            assert all(size == length for size in sizes[1:-1])
            assert 1 <= sizes[-1] <= length


def test_a_window_worked_by_hand() -> None:
    # One user with events at 5, 5, 7 and 8 µs: with three inputs they are one window.
    events = make_events([(4, 5), (4, 5), (4, 7), (4, 8)])
    [batch] = make_batches(events).epoch(0)
    assert batch.places is not None
    assert batch.times is not None
    assert batch.users.tolist() == [4, 4, 4, 4]
    assert batch.positives.tolist() == [0, 1, 2, 3]
    assert batch.histories.tolist() == [[2, 1, 0]]
    assert batch.times.tolist() == [[7, 5, 5]]
    assert batch.places.rows.tolist() == [0, 0, 0, 0]
    assert batch.places.skipped.tolist() == [3, 2, 1, 0]
    assert batch.newest_items().tolist() == [-1, 0, 1, 2]
    [apart] = make_batches(events, ties="exclude").epoch(0)
    assert apart.places is not None
    assert apart.places.skipped.tolist() == [3, 3, 1, 0]  # the second does not know the first


def test_the_cuts_fall_everywhere_alike() -> None:
    # 31 events in windows of 5: the first cut is after 1 to 5 events, each with chance 1/5. Of
    # 2,000 users the shares have a standard error of 0.009.
    log = [(user, time) for user in range(2000) for time in range(31)]
    [batch] = make_batches(make_events(log), history_length=5, batch_size=10**6).epoch(0)
    assert batch.places is not None
    sizes = np.bincount(batch.places.rows)
    first = np.isin(np.arange(len(sizes)), batch.places.rows[batch.positives % 31 == 0])
    shares = np.bincount(sizes[first], minlength=6)[1:] / 2000
    assert shares == pytest.approx(np.full(5, 0.2), abs=0.04)


def test_padding_has_no_time_and_data_in_mere_order_has_none() -> None:
    log = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5)]
    [batch] = make_batches(make_events(log)).epoch(0)
    assert batch.times is not None
    assert np.array_equal(batch.times == NO_TIME, batch.histories == -1)
    assert sorted(batch.times.flatten().tolist()) == [NO_TIME, 1, 2, 4]
    [ordered] = make_batches(make_events(log), clock="order").epoch(0)
    assert ordered.times is None


def test_weights_stay_with_their_positives() -> None:
    events = make_events([(0, time) for time in range(9)], weighted=True)
    for batch in make_batches(events).epoch(0):
        assert batch.weights is not None
        assert batch.weights.tolist() == batch.positives.tolist()  # the weight of item i is i


def numbers_of(batch: TrainingBatch) -> list[Any]:
    assert batch.places is not None
    parts = batch.users, batch.positives, batch.histories, batch.places.rows, batch.places.skipped
    return [part.tolist() for part in parts]


@given(log=LOGS, first=st.integers(0, 12), epoch=st.integers(0, 2))
def test_an_epoch_taken_up_at_a_batch_goes_on_with_the_same_batches(
    log: list[tuple[int, int]], first: int, epoch: int
) -> None:
    events = make_events(log)
    whole = list(make_batches(events).epoch(epoch))
    rest = make_batches(events).epoch(epoch, first_batch=first)
    assert [numbers_of(batch) for batch in rest] == [numbers_of(b) for b in whole[first:]]


@given(log=LOGS, size=st.integers(1, 5), drop_last=st.booleans())
def test_the_batches_of_several_epochs_are_counted_exactly(
    log: list[tuple[int, int]], size: int, drop_last: bool
) -> None:
    batches = make_batches(make_events(log), batch_size=size, drop_last=drop_last)
    emitted = [list(batches.epoch(epoch)) for epoch in range(3)]
    assert batches.count_batches(3) == sum(len(epoch) for epoch in emitted)
    assert batches.num_rows == len(log)
    whole = [len(batch.histories) == size for epoch in emitted for batch in epoch]
    assert all(whole) if drop_last else sum(whole) >= len(whole) - 3


def test_cuts_and_order_depend_on_seed_and_epoch() -> None:
    events = make_events([(user, time) for user in range(5) for time in range(20)])

    def order(seed: int, epoch: int) -> str:
        return str([numbers_of(batch) for batch in make_batches(events, seed=seed).epoch(epoch)])

    assert order(0, 0) == order(0, 0)
    assert len({order(*key) for key in ((0, 0), (0, 1), (1, 0), (1, 1))}) == 4


def test_the_stated_q_is_the_rate_at_which_an_epoch_emits_an_item() -> None:
    rng = np.random.default_rng(0)
    events = make_events([(int(user), i) for i, user in enumerate(rng.integers(0, 9, 400))])
    events = Events(events.users, rng.zipf(1.5, 400) % 12, events.timestamps, None, events.context)
    batches = make_batches(events, batch_size=4).epoch(3)
    emitted = Counter(item for batch in batches for item in batch.positives.tolist())
    popularity = ExactPopularity(np.bincount(events.items, minlength=13))
    rows = torch.tensor(sorted(emitted))
    stated = popularity.log_rate(rows, 64).exp() / 64
    assert stated.tolist() == pytest.approx([emitted[row] / 400 for row in sorted(emitted)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be above 0, got 0"),
        ({"history_length": 0}, "`history_length` must be above 0, got 0"),
        ({"clock": "none"}, "`clock` must be time or order for sequences, got none"),
    ],
)
def test_refuses_what_gives_no_sequences(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make_batches(make_events([(0, 0)]), **changes)
