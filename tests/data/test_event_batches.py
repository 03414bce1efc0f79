"""Training batches against a slow loop over the log; what an epoch emits; resumption."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import EventBatches, Events, FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import ArgumentError
from recsys.sampling import ExactPopularity

# (user, item, time), repeats and ties among them
LOGS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=30
)


def make_events(log: list[tuple[int, int, int]], *, weighted: bool = False) -> Events:
    """Sort a log by user and time, keeping the input order of ties."""
    log = sorted(log, key=lambda event: (event[0], event[2]))
    users, items, times = (np.array(column, np.int64) for column in zip(*log, strict=True))
    weights = np.arange(len(log), dtype=np.float32) if weighted else None
    return Events(users, items, times, weights, FeatureTable.missing(FeatureSchema(), len(log)))


def make_batches(events: Events, **changes: Any) -> EventBatches:
    settings: dict[str, Any] = {
        "clock": "time",
        "ties": "include",
        "history_length": 3,
        "batch_size": 4,
        "drop_last": False,
        "seed": 0,
    }
    return EventBatches(events, **settings | changes)


def rows_of(batches: list[TrainingBatch]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Give (user, positive, history) of every row of the batches."""
    return [
        (int(user), int(item), tuple(history.tolist()))
        for batch in batches
        for user, item, history in zip(batch.users, batch.positives, batch.histories, strict=True)
    ]


def expected_rows(
    events: Events, *, clock: str, ties: str, length: int, repeats: bool = False
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Say in a slow loop what each event's row must be."""
    rows = []
    assert events.timestamps is not None
    log = list(
        zip(events.users.tolist(), events.items.tolist(), events.timestamps.tolist(), strict=True)
    )
    for here, (user, item, time) in enumerate(log):
        mine = [place for place, event in enumerate(log) if event[0] == user]
        if clock == "none":  # the events behind it, round the end; without its item, or with
            after = [place for place in mine if place > here]
            before = [place for place in mine if place < here]
            seen = [log[place][1] for place in after + before][:length]
            history = [-1 if other == item and not repeats else other for other in seen]
        else:
            seen = [
                log[place][1]
                for place in mine
                if place < here and (ties == "include" or log[place][2] < time)
            ]
            history = seen[::-1][:length]
        rows.append((user, item, tuple(history + [-1] * (length - len(history)))))
    return rows


@given(
    log=LOGS,
    clock=st.sampled_from(["time", "order", "none"]),
    ties=st.sampled_from(["include", "exclude"]),
    repeats=st.booleans(),
    length=st.integers(1, 6),
    batch_size=st.integers(1, 40),
    epoch=st.integers(0, 3),
)
def test_an_epoch_visits_each_event_once_with_the_history_that_it_may_see(
    log: list[tuple[int, int, int]],
    clock: str,
    ties: str,
    repeats: bool,
    length: int,
    batch_size: int,
    epoch: int,
) -> None:
    events = make_events(log)
    batches = make_batches(
        events,
        clock=clock,
        ties=ties,
        repeats=repeats,
        history_length=length,
        batch_size=batch_size,
    )
    emitted = rows_of(list(batches.epoch(epoch)))
    wanted = expected_rows(events, clock=clock, ties=ties, length=length, repeats=repeats)
    assert Counter(emitted) == Counter(wanted)
    assert batches.num_rows == len(log)


@given(log=LOGS, data=st.data(), epoch=st.integers(0, 2))
def test_events_that_are_no_positives_stand_in_histories_alone(
    log: list[tuple[int, int, int]], data: st.DataObject, epoch: int
) -> None:
    events = make_events(log)
    chosen = data.draw(st.lists(st.integers(0, len(log) - 1), unique=True))
    batches = make_batches(events, positives=np.array(chosen, np.int64))
    wanted = expected_rows(events, clock="time", ties="include", length=3)
    emitted = rows_of(list(batches.epoch(epoch)))
    assert Counter(emitted) == Counter(wanted[place] for place in chosen)
    assert batches.num_rows == len(chosen)


@pytest.mark.parametrize("position", [-1, 3])
def test_a_positive_that_is_no_event_is_refused(position: int) -> None:
    events = make_events([(0, item, item) for item in range(3)])
    with pytest.raises(ArgumentError, match="`positives` must hold positions from 0 to 2"):
        make_batches(events, positives=np.array([0, position]))


@given(log=LOGS, length=st.integers(1, 6))
def test_without_an_order_a_positive_is_never_in_its_own_history(
    log: list[tuple[int, int, int]], length: int
) -> None:
    batches = make_batches(make_events(log), clock="none", history_length=length)
    for _, positive, history in rows_of(list(batches.epoch(0))):
        assert positive not in history


def test_without_an_order_repeats_stay_in_the_history_and_the_event_itself_does_not() -> None:
    # The user has item 7 twice and item 8 once: each event sees the other two.
    events = make_events([(0, 7, 1), (0, 8, 1), (0, 7, 1)])
    batches = make_batches(events, clock="none", repeats=True)
    emitted = rows_of(list(batches.epoch(0)))
    assert sorted(emitted) == [(0, 7, (7, 8, -1)), (0, 7, (8, 7, -1)), (0, 8, (7, 7, -1))]


def test_ties_worked_by_hand() -> None:
    events = make_events([(0, 10, 1), (0, 11, 1), (0, 12, 2)])
    for ties, of_second in (("include", (10, -1)), ("exclude", (-1, -1))):
        batches = make_batches(events, ties=ties, history_length=2)
        histories = {row[1]: row[2] for row in rows_of(list(batches.epoch(0)))}
        assert histories == {10: (-1, -1), 11: of_second, 12: (11, 10)}


def test_the_last_batch_is_the_rest_or_is_dropped() -> None:
    events = make_events([(0, item, item) for item in range(10)])
    kept, dropped = make_batches(events), make_batches(events, drop_last=True)
    assert [len(batch.users) for batch in kept.epoch(0)] == [4, 4, 2]
    assert [len(batch.users) for batch in dropped.epoch(0)] == [4, 4]
    assert (kept.num_rows, kept.count_batches(1)) == (10, 3)
    assert (dropped.num_rows, dropped.count_batches(1)) == (8, 2)


def test_the_dropped_rows_are_others_in_another_epoch() -> None:
    events = make_events([(0, item, item) for item in range(10)])
    batches = make_batches(events, drop_last=True)
    seen = set()
    for epoch in range(10):
        seen |= {row[1] for row in rows_of(list(batches.epoch(epoch)))}
    assert seen == set(range(10))


def test_a_batch_larger_than_the_log_holds_all_of_it() -> None:
    events = make_events([(0, item, item) for item in range(3)])
    [batch] = make_batches(events, batch_size=100).epoch(0)
    assert sorted(batch.positives.tolist()) == [0, 1, 2]


@given(first=st.integers(0, 6), epoch=st.integers(0, 2))
def test_an_epoch_taken_up_at_a_batch_goes_on_with_the_same_batches(first: int, epoch: int) -> None:
    events = make_events([(user, item, item) for user in range(4) for item in range(5)])
    whole = list(make_batches(events).epoch(epoch))
    rest = list(make_batches(events).epoch(epoch, first_batch=first))
    assert len(whole) == 5
    assert [rows_of([batch]) for batch in rest] == [rows_of([batch]) for batch in whole[first:]]


def test_the_order_depends_on_seed_and_epoch() -> None:
    events = make_events([(user, item, item) for user in range(4) for item in range(20)])

    def order(seed: int, epoch: int) -> list[int]:
        batches = make_batches(events, seed=seed).epoch(epoch)
        return [row[0] * 20 + row[1] for row in rows_of(list(batches))]

    assert order(0, 0) == order(0, 0)
    assert len({tuple(order(*key)) for key in ((0, 0), (0, 1), (1, 0), (1, 1))}) == 4


def test_weights_stay_with_their_rows() -> None:
    events = make_events([(0, item, item) for item in range(7)], weighted=True)
    for batch in make_batches(events).epoch(0):
        assert batch.weights is not None
        assert batch.weights.tolist() == batch.positives.tolist()  # the weight of item i is i
    assert next(make_batches(make_events([(0, 1, 2)])).epoch(0)).weights is None


def test_the_stated_q_is_the_rate_at_which_an_epoch_emits_an_item() -> None:
    rng = np.random.default_rng(0)
    items = rng.zipf(1.5, 500) % 12
    events = make_events([(i % 9, int(item), i) for i, item in enumerate(items)])
    batches = make_batches(events, batch_size=64)
    emitted = Counter(row[1] for row in rows_of(list(batches.epoch(3))))
    popularity = ExactPopularity(np.bincount(events.items, minlength=13))
    rows = torch.tensor(sorted(emitted))
    stated = popularity.log_rate(rows, 64).exp() / 64
    rates = [emitted[row] / 500 for row in sorted(emitted)]
    assert stated.tolist() == pytest.approx(rates, rel=1e-12)


def test_the_expected_count_in_a_batch_is_its_mean_over_many_epochs() -> None:
    # 12 events, 3 of item 0, batches of 4: item 0 stands in a batch 4 * 3/12 = 1 times on average.
    # Its count is hypergeometric with variance 4 * 1/4 * 3/4 * 8/11 = 0.545; the three batches of
    # an epoch hold 3 in all, so the first batch alone is averaged: standard error of the mean of
    # 2,000 is 0.0165.
    events = make_events([(0, 0 if place < 3 else place, place) for place in range(12)])
    batches = make_batches(events)
    counts = [int((next(batches.epoch(epoch)).positives == 0).sum()) for epoch in range(2000)]
    assert np.mean(counts) == pytest.approx(1.0, abs=0.07)


def test_refuses_a_batch_size_of_zero() -> None:
    with pytest.raises(ArgumentError, match="`batch_size` must be above 0, got 0"):
        make_batches(make_events([(0, 0, 0)]), batch_size=0)
