"""The columns of each part against events sorted in Python, and how many are written at once."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data.column_file import ColumnFile
from recsys.data.event_columns import order_events
from recsys.data.memory_budget import MemoryBudget
from recsys.data.part_counts import count_parts


def make_table(rng: np.random.Generator) -> pa.Table:
    users = np.concatenate([np.full(60, 3), rng.integers(0, 12, 60)])  # one has most events
    return pa.table({"user_id": users.astype(str), "item_id": np.arange(120).astype(str)})


@pytest.mark.parametrize("at_once", [1, 3, 10, 1000])
def test_parts_hold_their_events_by_user_and_users_are_written_by_so_many_events(
    open_log: Any, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    rng = np.random.default_rng(0)
    written: dict[ColumnFile, list[int]] = defaultdict(list)
    append = ColumnFile.append

    def note(column: ColumnFile, values: NDArray[Any]) -> None:
        written[column].append(len(values))
        append(column, values)

    monkeypatch.setattr("recsys.data.event_columns._EVENTS_AT_ONCE", at_once)
    monkeypatch.setattr(ColumnFile, "append", note)
    with open_log(make_table(rng)) as opened:
        log = opened.log
        part_of_row = rng.integers(0, 2, 120).astype(np.int8)
        parts = log.new_column("part", np.int8, [part_of_row])
        user_rows = rng.permutation(len(log.counts))
        users = user_rows[np.repeat(np.arange(len(log.counts)), log.counts)].tolist()
        events = list(zip(part_of_row.tolist(), users, log.columns["item"].map(), strict=True))
        found = order_events(
            log,
            parts,
            count_parts(log, parts),
            user_rows=user_rows,
            item_rows=np.arange(120),
            num_users=len(user_rows),
            budget=MemoryBudget.of(1.0),
        )
        for number, name in enumerate(("train", "validation", "test")):
            columns = found[name].columns
            mine = sorted((event for event in events if event[0] == number), key=lambda e: e[1])
            assert columns["user"].map().tolist() == [user for _, user, _ in mine]
            assert columns["item"].map().tolist() == [item for _, _, item in mine]
            assert max(written[columns["user"]], default=0) <= at_once
