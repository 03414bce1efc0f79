"""What the parts of a data set know of each other."""

from typing import Any

import numpy as np

from recsys.data.coded_log import CodedLog
from recsys.data.splits import TEST, TRAIN, VALIDATION, Split


def find_leaks(log: CodedLog, split: Split, clock: str) -> dict[str, Any]:
    """Count what training shares with validation and test, and what it lacks.

    Returns:
        For "validation" and "test" a table of counts: `rows`, `users`; `pairs_in_train` and, for
        the test, `pairs_in_validation` (distinct user-item pairs that stand there too);
        `items_unseen_in_train` and `users_unseen_in_train` with the rows they have. Where there
        is a clock, `cut`: the first moment of validation or test (microseconds, UTC), and
        `train_rows_at_or_after_cut`.
    """
    leaks: dict[str, Any] = {
        "validation": _compare(log, split, VALIDATION),
        "test": _compare(log, split, TEST),
    }
    later = (split.parts == VALIDATION) | (split.parts == TEST)
    if clock == "time" and log.timestamps is not None and later.any():
        cuts = [cut for cut in (split.validation_from, split.test_from) if cut is not None]
        cut = min(cuts) if cuts else int(log.timestamps[later].min())
        train_times = log.timestamps[split.parts == TRAIN]
        leaks["cut"] = cut
        leaks["train_rows_at_or_after_cut"] = int(np.count_nonzero(train_times >= cut))
    return leaks


def _compare(log: CodedLog, split: Split, part: int) -> dict[str, int]:
    train, here = split.parts == TRAIN, split.parts == part
    pairs = np.unique(log.pairs[here])
    counts = {"rows": int(here.sum()), "users": len(np.unique(log.users[here]))}
    counts["pairs_in_train"] = int(np.isin(pairs, log.pairs[train]).sum())
    if part == TEST:
        in_validation = log.pairs[split.parts == VALIDATION]
        counts["pairs_in_validation"] = int(np.isin(pairs, in_validation).sum())
    for name, codes, ids in (
        ("items", log.items, log.item_ids),
        ("users", log.users, log.user_ids),
    ):
        unseen = np.bincount(codes[train], minlength=len(ids)) == 0
        rows_unseen = unseen[codes[here]]
        counts[f"{name}_unseen_in_train"] = len(np.unique(codes[here][rows_unseen]))
        counts[f"rows_of_{name}_unseen_in_train"] = int(rows_unseen.sum())
    return counts
