"""Times of several jobs, taken in turn, so that what slows the machine down slows all of them."""

import time
from collections.abc import Callable, Mapping

from recsys.foundations import Progress, check_positive

Job = Callable[[], object]


def time_alternately(what: str, jobs: Mapping[str, Job], *, rounds: int) -> dict[str, list[float]]:
    """Run every job once unmeasured, then all of them in turn, round after round.

    Every other round runs in the opposite order.

    Args:
        what: Stands in the progress bar.
        jobs: Name -> job.
        rounds: At least 1.

    Returns:
        Name -> seconds of each round.
    """
    check_positive("rounds", rounds)
    for job in jobs.values():
        job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    with Progress(f"benchmark {what}", rounds, "rounds") as bar:
        for turn in range(rounds):
            names = list(jobs) if turn % 2 == 0 else list(jobs)[::-1]
            for name in names:
                started = time.perf_counter()
                jobs[name]()
                seconds[name].append(time.perf_counter() - started)
            bar.advance(1)
    return seconds
