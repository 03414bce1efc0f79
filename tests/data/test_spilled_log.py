"""A log that has to be read again leaves on disk what one that is read once leaves."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recsys.data import RawLog
from recsys.data.context_file import ContextFile
from recsys.data.memory_budget import MemoryBudget
from recsys.data.raw import ReadAgain
from recsys.data.spilled_log import spill_logs
from recsys.data.work_folder import WorkFolder, work_folder

SCHEMA = pa.schema({"hour": pa.int64()})


class ReadTwice(RawLog):
    """A log whose first batches turn out to be void."""

    def batches(self, kinds: Mapping[str, str]) -> Iterator[pa.Table]:
        yield from super().batches(kinds)
        if not self.warnings:
            self.warnings.append("read")
            raise ReadAgain


def make_log(kind: type[RawLog]) -> RawLog:
    ids = pa.array([str(number) for number in range(50)], pa.large_string())
    table = pa.table({"user_id": ids, "item_id": ids, "hour": np.arange(50)})
    return kind(table, "none", {}, 50, [])


def file_sizes(folder: Path, kind: type[RawLog]) -> list[tuple[str, int]]:
    """Give name, without its number, and size of each file after a log was read."""
    budget = MemoryBudget.of(1.0)
    with work_folder(folder / "output") as work:
        log = {"train": make_log(kind)}
        spilled = spill_logs(log, work, budget, with_rows=True, with_parts=False)
        assert set(spilled.item_ids.texts.to_pylist()) == {str(number) for number in range(50)}
        assert spilled.context["hour"].to_pylist() == list(range(50))
        files = list(work.path.iterdir())
        return sorted((path.name.split("-")[1], path.stat().st_size) for path in files)


def test_what_was_read_in_vain_leaves_no_file(tmp_path: Path) -> None:
    once = file_sizes(tmp_path, RawLog)
    assert ("ids", 90) in once  # 10 texts of one digit, 40 of two
    assert file_sizes(tmp_path, ReadTwice) == once


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_context_file_that_cannot_end_is_closed_and_is_ended_once(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    (tmp_path / "0-context").symlink_to("/dev/full")
    batch: Any = pa.table({"hour": np.arange(9)})
    before = len(list(folder.iterdir()))
    with ContextFile(WorkFolder(tmp_path), SCHEMA) as file:
        with pytest.raises(OSError, match=os.strerror(28)):
            file.add(batch)
        with pytest.raises(OSError, match=os.strerror(28)):
            file.clear()
        assert len(list(folder.iterdir())) == before
