"""Codes for ids that come batch by batch: the same id has the same code in every batch.

A table finds numbers of 64 bits. Texts are found by their hash and then compared, so that two texts
of one hash never become one id.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.feature_columns import whole_column
from recsys.data.growing_array import GrowingArray
from recsys.data.id_kinds import TEXT
from recsys.data.id_lists import IdArray, IdList, TextIds, make_id_list
from recsys.data.id_table import IdTable
from recsys.data.text_words import hash_texts
from recsys.data.work_folder import WorkFolder
from recsys.foundations import DataError, sorted_distinct

_MOST = 2**31 - 1  # codes are int32

Hash = Callable[[pa.LargeStringArray], NDArray[np.uint64]]


class IdCoder(Protocol):
    """Gives codes 0, 1, 2, ... to ids as they are met.

    Attributes:
        ids: The ids by code.
    """

    ids: IdList

    def code(self, ids: IdArray) -> NDArray[np.int32]:
        """Give the code of each id: [N], int32; ids that are new get the next codes."""


def make_id_coder(kind: str, work: WorkFolder) -> IdCoder:
    """Make a coder for ids of a kind (see `id_kinds`)."""
    return TextCoder(work) if kind == TEXT else NumericCoder(kind, work)


class NumericCoder:
    """Codes of numbers.

    Args:
        kind: "signed" or "unsigned".
        work: The folder for what does not stay in memory.
    """

    def __init__(self, kind: str, work: WorkFolder) -> None:
        self.ids: IdList = make_id_list(kind, work)
        self._table = IdTable()

    def code(self, ids: IdArray) -> NDArray[np.int32]:
        """Give the code of each number: [N], int32."""
        numbers = np.asarray(ids, np.int64)
        codes = self._table.find(numbers)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            new = sorted_distinct(numbers[unknown])
            _check_count(len(self.ids) + len(new))
            self._table.add(new)
            self.ids.append(new)
            codes[unknown] = self._table.find(numbers[unknown])
        return codes


class TextCoder:
    """Codes of texts.

    Args:
        work: The folder for the bytes of the texts.
        hash_of: Hashes texts; the same text has the same hash.
    """

    def __init__(self, work: WorkFolder, hash_of: Hash = hash_texts) -> None:
        self._known = TextIds(work)
        self.ids: IdList = self._known
        self._hash_of = hash_of
        self._table = IdTable()
        self._codes_of_entries = GrowingArray(np.int32)  # by the table's code
        self._others: dict[str, int] = {}  # texts whose hash another text has; hardly ever any

    def code(self, ids: IdArray) -> NDArray[np.int32]:
        """Give the code of each text: [N], int32."""
        encoded = whole_dictionary(ids)
        texts = encoded.dictionary
        codes: NDArray[np.int32] = self._code_distinct(texts)[np.asarray(encoded.indices)]
        return codes

    def _code_distinct(self, texts: pa.LargeStringArray) -> NDArray[np.int32]:
        hashes = self._hash_of(texts).view(np.int64)
        entries = self._table.find(hashes)
        unknown = np.flatnonzero(entries < 0)
        if len(unknown):
            _, first = np.unique(hashes[unknown], return_index=True)
            unknown = unknown[first]  # of several new texts of one hash one gets the entry
            new_codes = self._append(texts.take(pa.array(unknown)))
            self._table.add(hashes[unknown])
            self._codes_of_entries.append(new_codes)
            entries = self._table.find(hashes)
        codes = self._codes_of_entries.values[entries]
        found = self._known.texts().take(pa.array(codes))
        for place in np.flatnonzero(~np.asarray(pc.equal(found, texts))).tolist():
            codes[place] = self._code_of_other(texts[place].as_py())
        return codes

    def _code_of_other(self, text: str) -> int:
        if text not in self._others:
            [code] = self._append(pa.array([text], pa.large_string()))
            self._others[text] = int(code)
        return self._others[text]

    def _append(self, texts: pa.LargeStringArray) -> NDArray[np.int32]:
        first = len(self._known)
        _check_count(first + len(texts))
        self._known.append(texts)
        return np.arange(first, first + len(texts), dtype=np.int32)


def whole_dictionary(texts: pa.LargeStringArray | pa.ChunkedArray) -> pa.DictionaryArray:
    """Give texts as places in the array of the distinct ones, by their first mention."""
    return whole_column(texts).dictionary_encode()


def _check_count(count: int) -> None:
    if count > _MOST:
        raise DataError(f"A log can have {_MOST:,} distinct ids of items at most, got {count:,}.")
