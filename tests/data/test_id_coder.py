"""Codes of ids against a dictionary, with hashes that collide too."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.data.id_coder import IdCoder, TextCoder, make_id_coder
from recsys.data.id_kinds import common_kind, id_kind
from recsys.data.id_lists import make_id_list
from recsys.data.id_table import IdTable
from recsys.data.text_words import hash_texts
from recsys.data.work_folder import WorkFolder, work_folder

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkFolder]:
    with work_folder(tmp_path_factory.mktemp("codes") / "output") as folder:
        yield folder


def check(coder: IdCoder, batches: list[list[str]], kind: pa.DataType) -> None:
    """Compare codes with those that a dictionary gives, up to their order."""
    known: dict[str, int] = {}
    for batch in batches:
        texts = pa.array(batch, pa.large_string())
        ids = texts if kind == pa.large_string() else texts.cast(kind).to_numpy()
        codes = coder.code(ids.view(np.int64) if isinstance(ids, np.ndarray) else ids)
        for text, code in zip(batch, codes.tolist(), strict=True):
            assert known.setdefault(text, code) == code
    assert sorted(known.values()) == list(range(len(known)))
    assert coder.ids.texts().to_pylist() == sorted(known, key=known.__getitem__)


@given(batches=st.lists(st.lists(NUMBERS)))
def test_numbers(work: WorkFolder, batches: list[list[int]]) -> None:
    texts = [[str(number) for number in batch] for batch in batches]
    check(make_id_coder("signed", work), texts, pa.int64())
    above = [[str(number % 2**64) for number in batch] for batch in batches]
    check(make_id_coder("unsigned", work), above, pa.uint64())


@given(batches=st.lists(st.lists(st.text(max_size=12))))
def test_texts(work: WorkFolder, batches: list[list[str]]) -> None:
    check(make_id_coder("text", work), batches, pa.large_string())


@given(batches=st.lists(st.lists(st.text("abc", max_size=4))), hashes=st.integers(1, 3))
def test_texts_of_one_hash_stay_apart(
    work: WorkFolder, batches: list[list[str]], hashes: int
) -> None:
    def few(texts: pa.LargeStringArray) -> NDArray[np.uint64]:
        return hash_texts(texts) % np.uint64(hashes)

    check(TextCoder(work, few), batches, pa.large_string())


def test_a_batch_costs_no_memory_for_the_ids_of_other_batches(work: WorkFolder) -> None:
    coder = make_id_coder("text", work)
    coder.code(pa.array([f"id {number}" for number in range(100_000)], pa.large_string()))
    coder.code(pa.array(["new"], pa.large_string()))  # the last one that had to make room
    tracemalloc.start()
    try:
        for text in ("newer", "id 7", "newest"):
            coder.code(pa.array([text], pa.large_string()))
        assert tracemalloc.get_traced_memory()[1] < 100_000  # less than a byte an id
    finally:
        tracemalloc.stop()


def test_texts_that_were_given_stay_as_more_are_added(work: WorkFolder) -> None:
    ids = make_id_list("text", work)
    assert ids.texts().to_pylist() == []
    given = []
    for number in range(40):
        ids.append(pa.array([f"{number}", "é"], pa.large_string()))
        given.append(ids.texts())
    for number, texts in enumerate(given):
        wanted = [text for before in range(number + 1) for text in (f"{before}", "é")]
        assert texts.to_pylist() == wanted


def test_a_table_finds_what_was_added_and_nothing_else_however_slots_collide() -> None:
    table, rng = IdTable(), np.random.default_rng(0)
    # Multiples of 2**40 share their low bits; neighbours share their high ones.
    keys = np.concatenate([np.arange(5000) << 40, np.arange(1, 5000), -np.arange(1, 5000)])
    keys = rng.permutation(np.unique(keys))
    for start in range(0, len(keys), 700):
        block = keys[start : start + 700]
        assert (table.find(block) == -1).all()
        table.add(block)
        assert table.find(keys[: start + 700]).tolist() == list(range(len(table)))


def test_ids_are_numbers_only_where_all_files_hold_numbers_of_one_sign() -> None:
    small, large, text = pa.int32(), pa.uint64(), pa.string()
    words = pa.dictionary(pa.int8(), pa.int64())
    assert id_kind([small, pa.float64(), pa.null(), words]) == "signed"
    assert id_kind([large, pa.null()]) == "unsigned"
    for mixed in ([small, large], [small, text], [pa.null()], [pa.decimal128(5, 0)]):
        assert id_kind(mixed) == "text"
    assert common_kind(["signed", "signed"]) == "signed"
    assert common_kind(["signed", "unsigned"]) == "text"
