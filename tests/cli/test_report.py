"""What the machine lacks, in one sentence, whichever library says so."""

import errno
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from recsys.cli.report import report
from recsys.index import FaissIndex, IndexSettings, write_index


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file grow beyond 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("full_disk")
def test_tensors_that_find_no_room_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="os error") as caught:
        save_file({"a": torch.zeros(10_000)}, tmp_path / "a")
    assert report(caught.value) == 2


@pytest.mark.usefixtures("full_disk")
def test_an_index_that_finds_no_room_is_named(tmp_path: Path) -> None:
    vectors = np.ones((300, 8), np.float32)
    index = FaissIndex.build(vectors, IndexSettings(kind="flat"))
    with pytest.raises(
        OSError, match=r"index\.faiss cannot be written \(File too large\)"
    ) as caught:
        write_index(tmp_path / "index.faiss", index)
    assert list(tmp_path.iterdir()) == []
    assert report(caught.value) == 2


def test_a_path_that_stands_only_in_the_words_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(OSError(errno.ENOENT, "Failed to open local file '/proc/x'")) == 2
    assert (
        "No such file or directory: Failed to open local file '/proc/x'" in capsys.readouterr().err
    )
