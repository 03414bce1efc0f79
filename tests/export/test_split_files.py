"""Rows of text in files of bounded size, whatever the blocks are."""

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.export.split_files import SplitFiles
from recsys.foundations import DataError


def write(folder: Path, blocks: list[list[str]], most: int) -> list[bytes]:
    files = SplitFiles(
        folder,
        stem="part",
        suffix=".json",
        most_bytes=most,
        opening=b"[",
        closing=b"]",
        separator=b",",
    )
    with files:
        for block in blocks:
            texts = pa.array([json.dumps(text, ensure_ascii=False) for text in block])
            files.write(texts.cast(pa.large_string()), pa.array(block, pa.large_string()))
    return [path.read_bytes() for path in sorted(folder.glob("part-*.json"))]


@given(
    blocks=st.lists(st.lists(st.text("aé🎈", max_size=6), max_size=9)), most=st.integers(40, 120)
)
def test_all_rows_come_back_in_order_from_files_below_the_size(
    blocks: list[list[str]], most: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), blocks, most)
    assert all(len(file) <= most for file in files)
    lists = [json.loads(file) for file in files]
    assert [text for one in lists for text in one] == [text for one in blocks for text in one]
    assert all(lists)


def test_a_file_is_filled_before_the_next_one(tmp_path: Path) -> None:
    # Each row takes 5 bytes with its comma, the brackets 2: three rows in 17 bytes.
    files = write(tmp_path, [["aa"], ["bb", "cc", "dd", "ee"], ["ff"]], 17)
    assert files == [b'["aa","bb","cc"]', b'["dd","ee","ff"]']


def test_a_row_that_is_too_large_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Item 'aaaaaaaaaaaaaaaa' takes 19 bytes, more than the 15"):
        write(tmp_path, [["a"], ["b", "a" * 16]], 17)
