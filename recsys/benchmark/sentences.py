"""A log of words, read as sentences.

Dimensions: N words in all sentences.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data import ColumnNames, TableFormat, read_interactions
from recsys.foundations import DataError


@dataclass(frozen=True)
class Sentences:
    """Sentences one behind the other, in the order in which they first appear in the log.

    Attributes:
        owners: [N], int64, the sentence of each word, from 0; never falling.
        words: [N], int64, codes of the words by first appearance in the log, from 0.
        num_words: Different words.
    """

    owners: NDArray[np.int64]
    words: NDArray[np.int64]
    num_words: int

    @property
    def num_sentences(self) -> int:
        """Count the sentences."""
        return int(self.owners[-1]) + 1 if len(self.owners) else 0


def read_sentences(path: Path) -> Sentences:
    """Read a log whose users are sentences, whose items are words and whose times are positions.

    Args:
        path: A CSV, TSV or Parquet file, or a folder of them, with the columns `user_id`,
            `item_id` and `timestamp` (whole numbers).

    Returns:
        The words of each sentence by position, those of the same position in input order.

    Raises:
        MissingFileError: There is no such file.
        DataError: A column is missing, or a row has no sentence, word or position.
    """
    try:
        log = read_interactions(
            path,
            format=TableFormat(),
            columns=ColumnNames(rating=None, weight=None),
            required=frozenset({"timestamp"}),
            timestamp_unit="order",
        ).table
    except DataError as error:
        message, _, _ = str(error).partition(" Name it by ")  # here no setting names a column
        raise DataError(message) from error
    owners, _ = _codes(log["user_id"])
    words, num_words = _codes(log["item_id"])
    order = np.lexsort((log["timestamp"].to_numpy(), owners))  # stable
    return Sentences(owners[order], words[order], num_words)


def _codes(ids: pa.ChunkedArray) -> tuple[NDArray[np.int64], int]:
    """Number ids by first appearance: [N], and how many there are."""
    encoded = ids.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
