"""What the parts of a data set know of each other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.distinct import count_common, sorted_distinct
from recsys.data.split_settings import TEST, TRAIN, VALIDATION, Split


def find_leaks(log: CodedLog, split: Split, clock: str) -> dict[str, Any]:
    """Count what training shares with validation and test, and what it lacks.

    Returns:
        For "validation" and "test" a table of counts: `rows`, `users`; `pairs_in_train` and, for
        the test, `pairs_in_validation` (distinct user-item pairs that stand there too);
        `items_unseen_in_train` and `users_unseen_in_train` with the rows they have. Where there
        is a clock, `cut`: the first moment of validation or test (microseconds, UTC), and
        `train_rows_at_or_after_cut`.
    """
    pairs = {
        name: sorted_distinct(log.pairs[split.parts == part])
        for name, part in (("train", TRAIN), ("validation", VALIDATION), ("test", TEST))
    }
    leaks: dict[str, Any] = {}
    for name, part in (("validation", VALIDATION), ("test", TEST)):
        leaks[name] = _count_unseen(log, split, part)
        leaks[name]["pairs_in_train"] = count_common(pairs[name], pairs["train"])
    leaks["test"]["pairs_in_validation"] = count_common(pairs["test"], pairs["validation"])
    later = (split.parts == VALIDATION) | (split.parts == TEST)
    if clock == "time" and log.timestamps is not None and later.any():
        cuts = [cut for cut in (split.validation_from, split.test_from) if cut is not None]
        cut = min(cuts) if cuts else int(log.timestamps[later].min())
        train_times = log.timestamps[split.parts == TRAIN]
        leaks["cut"] = cut
        leaks["train_rows_at_or_after_cut"] = int(np.count_nonzero(train_times >= cut))
    return leaks


def _count_unseen(log: CodedLog, split: Split, part: int) -> dict[str, int]:
    train, here = split.parts == TRAIN, split.parts == part
    counts = {"rows": int(here.sum()), "users": _count_kinds(log.users[here])}
    for name, codes, ids in (
        ("items", log.items, log.item_ids),
        ("users", log.users, log.user_ids),
    ):
        unseen = np.bincount(codes[train], minlength=len(ids)) == 0
        rows_unseen = codes[here][unseen[codes[here]]]
        counts[f"{name}_unseen_in_train"] = _count_kinds(rows_unseen)
        counts[f"rows_of_{name}_unseen_in_train"] = len(rows_unseen)
    return counts


def _count_kinds(codes: NDArray[np.int64]) -> int:
    return int(np.count_nonzero(np.bincount(codes)))
