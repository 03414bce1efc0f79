"""What the parts of a data set know of each other."""

from typing import Any

import numpy as np

from recsys.data.coded_log import CodedLog
from recsys.data.pair_counts import PairCounts
from recsys.data.part_counts import PartCounts
from recsys.data.split_settings import TEST, TRAIN, VALIDATION, Split


def find_leaks(
    log: CodedLog, split: Split, clock: str, counts: PartCounts, pairs: PairCounts
) -> dict[str, Any]:
    """Count what training shares with validation and test, and what it lacks.

    Args:
        log: After the filters.
        split: Of the log.
        clock: "time", "order" or "none".
        counts: Of the split.
        pairs: Of the split.

    Returns:
        For "validation" and "test" a table of counts: `rows`, `users`; `pairs_in_train` and, for
        the test, `pairs_in_validation` (distinct user-item pairs that stand there too);
        `items_unseen_in_train` and `users_unseen_in_train` with the rows they have. Where there
        is a clock, `cut`: the first moment of validation or test (microseconds, UTC), and
        `train_rows_at_or_after_cut`.
    """
    leaks: dict[str, Any] = {}
    for name, part in (("validation", VALIDATION), ("test", TEST)):
        leaks[name] = _count_unseen(counts, part)
        leaks[name]["pairs_in_train"] = pairs.common[part, TRAIN]
    leaks["test"]["pairs_in_validation"] = pairs.common[TEST, VALIDATION]
    later = int(counts.rows[VALIDATION] + counts.rows[TEST])
    if clock == "time" and log.has("timestamp") and later:
        cuts = [cut for cut in (split.validation_from, split.test_from) if cut is not None]
        cut = min(cuts) if cuts else _first_held_out(log, split)
        leaks["cut"] = cut
        leaks["train_rows_at_or_after_cut"] = _count_late(log, split, cut)
    return leaks


def _count_unseen(counts: PartCounts, part: int) -> dict[str, int]:
    found = {"rows": int(counts.rows[part]), "users": int(np.count_nonzero(counts.users[part]))}
    for name, by_part in (("items", counts.items), ("users", counts.users)):
        unseen = by_part[part][by_part[TRAIN] == 0]
        found[f"{name}_unseen_in_train"] = int(np.count_nonzero(unseen))
        found[f"rows_of_{name}_unseen_in_train"] = int(unseen.sum(dtype=np.int64))
    return found


def _first_held_out(log: CodedLog, split: Split) -> int:
    """Give the first time of validation and test, of which there are rows."""
    firsts = []
    for block in log.blocks("timestamp", what="looking for leaks"):
        parts = split.parts.read(block.start, block.stop)
        times = block.columns["timestamp"][(parts == VALIDATION) | (parts == TEST)]
        if len(times):
            firsts.append(int(times.min()))
    return min(firsts)


def _count_late(log: CodedLog, split: Split, cut: int) -> int:
    """Count training rows at or after a time."""
    late = 0
    for block in log.blocks("timestamp", what="looking for leaks"):
        parts = split.parts.read(block.start, block.stop)
        late += int(np.count_nonzero((block.columns["timestamp"] >= cut) & (parts == TRAIN)))
    return late
