"""Training batches with histories against a bare gather of user and item."""

import itertools

from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.benchmark.synthetic import make_events
from recsys.data import EventBatches
from recsys.foundations import make_numpy_generator


def measure_batches(
    *,
    num_rows: int,
    num_users: int,
    num_items: int,
    history_length: int,
    batch_size: int,
    batches: int,
    rounds: int,
    seed: int,
) -> BenchmarkResult:
    """Time how fast batches are made.

    Args:
        num_rows: Training events.
        num_users: Users.
        num_items: Items.
        history_length: Events of history a row.
        batch_size: Rows a batch.
        batches: Batches a round, at most; an epoch may have fewer.
        rounds: Rounds.
        seed: Of the events and their order.
    """
    rng = make_numpy_generator(seed, "benchmark", "batches")
    events = make_events(num_rows=num_rows, num_users=num_users, num_items=num_items, rng=rng)
    source = EventBatches(
        events,
        clock="order",
        ties="include",
        history_length=history_length,
        batch_size=batch_size,
        drop_last=False,
        seed=seed,
    )
    taken = min(batches, source.count_batches(1))

    def with_histories() -> None:
        for _ in itertools.islice(source.epoch(0), taken):
            pass

    def bare() -> None:
        order = make_numpy_generator(seed, "bare").permutation(num_rows)
        for batch in range(taken):
            rows = order[batch * batch_size : (batch + 1) * batch_size]
            events.users[rows], events.items[rows]

    jobs = {"batches with histories": with_histories, "bare gather": bare}
    units = min(taken * batch_size, num_rows)
    measurements = {
        name: Measurement(seconds, units, "rows", calls=taken)
        for name, seconds in time_alternately("batches", jobs, rounds=rounds).items()
    }
    return BenchmarkResult(
        "batches",
        "shuffled training batches with their histories, and users and items alone",
        {
            "num_rows": num_rows,
            "num_users": num_users,
            "num_items": num_items,
            "history_length": history_length,
            "batch_size": batch_size,
            "batches": taken,
            "rounds": rounds,
        },
        measurements,
        (time_ratio(measurements, "batches with histories", "bare gather"),),
    )
