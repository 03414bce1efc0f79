"""What the machine lacks, in one sentence, whichever library says so."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from recsys.cli.report import report

# In a process of its own: the limit would hit the log of the tests, too.
_LIMIT = """
import pathlib, resource, signal, sys
import numpy, torch
from safetensors.torch import save_file
from recsys.cli.report import report
from recsys.index import FaissIndex, IndexSettings, write_index
folder = pathlib.Path(sys.argv[1])
index = FaissIndex.build(numpy.ones((300, 8), numpy.float32), IndexSettings(kind="flat"))
before = resource.getrlimit(resource.RLIMIT_FSIZE)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
try:
    WRITE
    status = 0
except Exception as error:
    status = report(error)
resource.setrlimit(resource.RLIMIT_FSIZE, before)
sys.exit(status)
"""


def write_on_a_full_disk(statement: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a statement where no file may grow beyond 1,000 bytes."""
    return subprocess.run(
        [sys.executable, "-c", _LIMIT.replace("WRITE", statement), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_tensors_that_find_no_room_are_one_sentence(tmp_path: Path) -> None:
    done = write_on_a_full_disk("save_file({'a': torch.zeros(10_000)}, folder / 'a')", tmp_path)
    assert done.returncode == 2
    assert "recsys: error: File too large" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_index_that_finds_no_room_is_named(tmp_path: Path) -> None:
    done = write_on_a_full_disk("write_index(folder / 'index.faiss', index)", tmp_path)
    assert done.returncode == 2
    assert "index.faiss cannot be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_stands_only_in_the_words_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(OSError(errno.ENOENT, "Failed to open local file '/proc/x'")) == 2
    assert (
        "No such file or directory: Failed to open local file '/proc/x'" in capsys.readouterr().err
    )
