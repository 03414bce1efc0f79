"""The folder of a preparation goes, whatever happens, and a full disk is said in one sentence."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recsys.data import FilterSettings, RawLog, SplitSettings, prepare_dataset
from recsys.data.column_file import ColumnFile
from recsys.data.work_folder import work_folder
from recsys.foundations import DataError


def make_log() -> RawLog:
    ids = pa.array([str(number % 5) for number in range(20)], pa.large_string())
    return RawLog(pa.table({"user_id": ids, "item_id": ids}), "none", {}, 20, [])


def prepare(output: Path) -> Path:
    return prepare_dataset(
        make_log(),
        items=None,
        users=None,
        output=output,
        filters=FilterSettings(),
        split=SplitSettings(),
        seed=0,
        exclude_seen=False,
    )


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_a_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(self: ColumnFile, values: object) -> None:
        del self, values
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(ColumnFile, "append", fail)
    with pytest.raises(DataError, match=f"The disk that holds {tmp_path} is full: preparing"):
        prepare(tmp_path / "dataset")
    assert list(tmp_path.iterdir()) == []


def test_other_errors_pass_and_leave_nothing(tmp_path: Path) -> None:
    def fail(error: BaseException) -> None:
        with work_folder(tmp_path / "dataset") as work:
            work.column("x", np.int64).append(np.arange(9))
            raise error

    for error in (OSError(errno.EIO, "broken"), KeyboardInterrupt(), SystemExit(143)):
        with pytest.raises(type(error)):
            fail(error)
        assert list(tmp_path.iterdir()) == []


def test_only_the_data_set_stays(tmp_path: Path) -> None:
    prepare(tmp_path / "dataset")
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


SCRIPT = """
import os, signal, sys
from pathlib import Path
from recsys.data.work_folder import work_folder
from recsys.foundations import unwinding_on_signals

with unwinding_on_signals(), work_folder(Path(sys.argv[1]) / "dataset") as work:
    print(work.path.exists(), flush=True)
    os.kill(os.getpid(), int(sys.argv[2]))
    signal.pause()
"""


def test_it_goes_when_the_process_is_told_to_end(tmp_path: Path) -> None:
    number = str(int(signal.SIGTERM))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), number],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True\n", 128 + signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_preparation_left_goes_with_the_next_one(tmp_path: Path) -> None:
    number = str(int(signal.SIGKILL))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), number],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True\n", -signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) == 1
    with work_folder(tmp_path / "other"):
        assert len(list(tmp_path.iterdir())) == 2
    with work_folder(tmp_path / "dataset") as held, work_folder(tmp_path / "dataset") as work:
        assert sorted(tmp_path.iterdir()) == sorted([held.path, work.path])
    assert list(tmp_path.iterdir()) == []


def test_a_column_gives_back_what_was_added(tmp_path: Path) -> None:
    with work_folder(tmp_path / "dataset") as work:
        column = work.column("x", np.int32)
        assert column.map().tolist() == []
        for block in (np.arange(5), np.zeros(0, np.int64), np.arange(5, 9)[::-1]):
            column.append(block)
        assert len(column) == 9
        assert column.read(3, 7).tolist() == [3, 4, 8, 7]
        mapped = column.map()
        assert mapped.tolist() == [0, 1, 2, 3, 4, 8, 7, 6, 5]
        assert mapped.dtype == np.int32
        with pytest.raises(EOFError, match="ends before value 11"):
            column.read(8, 11)
        column.clear()
        column.append(np.array([7]))
        assert column.read(0, 1).tolist() == [7]
