"""Arrays that are mapped: whole ones, and files with damage at any byte of the header."""

from pathlib import Path

import numpy as np
import pytest

from recsys.foundations import FormatError, map_npy

VALUES = np.arange(12, dtype=np.int64).reshape(3, 4)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", VALUES)
    return tmp_path / "a.npy"


def test_an_array_is_mapped_as_it_was_written(file: Path) -> None:
    assert isinstance(map_npy(file), np.memmap)
    assert np.array_equal(map_npy(file), VALUES)


@pytest.mark.filterwarnings("ignore:Data type alias:DeprecationWarning")
def test_a_flipped_byte_of_the_header_is_a_refusal_or_another_array(file: Path) -> None:
    whole, said = file.read_bytes(), list[str]()
    for place in range(128):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            file.write_bytes(bytes(changed))
            try:
                map_npy(file)
            except FormatError as error:
                said.append(str(error))
    assert len(said) > 300
    assert all(one.startswith(str(file)) for one in said)


@pytest.mark.parametrize("size", [0, 5, 60, 128, 200])
def test_a_file_that_ends_early_is_refused(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(FormatError, match=r"a\.npy is damaged: not a whole \.npy file"):
        map_npy(file)


def test_archives_and_folders_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", VALUES)
    with pytest.raises(FormatError, match=r"b\.npz is damaged"):
        map_npy(tmp_path / "b.npz")
    with pytest.raises(FormatError, match="cannot be mapped: Is a directory"):
        map_npy(tmp_path)
