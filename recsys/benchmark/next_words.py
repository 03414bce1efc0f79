"""Next-word prediction: sentences in three parts, and what each word is predicted from.

Dimensions: N words of a part, P of them examples, C rows of the catalogue of words.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.sentences import Sentences
from recsys.data import Events, FeatureSchema, FeatureTable
from recsys.foundations import DataError, check_positive

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class NextWords:
    """One part.

    Attributes:
        events: The words: user = sentence from 0, item = row of the word.
        examples: [P], int64, positions of the words with an earlier one in their sentence.
    """

    events: Events
    examples: NDArray[np.int64]

    @property
    def targets(self) -> NDArray[np.int64]:
        """Give the words that are to be predicted: [P] rows."""
        return self.events.items[self.examples].astype(np.int64)


@dataclass(frozen=True)
class NextWordData:
    """A text, ready for the experiment.

    Attributes:
        train: The first sentences.
        validation: Those before the test part.
        test: The last sentences.
        num_rows: C: words with a row of their own, and the row of the rare ones if there are any.
        num_rare_words: Different words of the whole text that share the last row.
        num_words: Different words of the whole text.
    """

    train: NextWords
    validation: NextWords
    test: NextWords
    num_rows: int
    num_rare_words: int
    num_words: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """Count the training examples of each row, as an epoch emits them: [C]."""
        return np.bincount(self.train.targets, minlength=self.num_rows)

    def parts(self) -> Iterator[tuple[str, NextWords]]:
        """Give the parts by name."""
        for name in PARTS:
            yield name, getattr(self, name)

    def describe(self) -> dict[str, int]:
        """Count sentences, words, and the words that are scored, of each part."""
        facts = {
            "num_words": self.num_words,
            "num_rows": self.num_rows,
            "num_rare_words": self.num_rare_words,
        }
        unseen = self.counts == 0
        for name, part in self.parts():
            facts |= {
                f"{name}_sentences": int(part.events.users[-1]) + 1,
                f"{name}_words": len(part.events),
                f"{name}_examples": len(part.examples),
                f"{name}_examples_of_unseen_words": int(unseen[part.targets].sum()),
            }
        return facts


def prepare_next_words(
    sentences: Sentences, *, validation_share: float, test_share: float, min_count: int
) -> NextWordData:
    """Cut sentences in three parts by their order, and give words their rows.

    Args:
        sentences: In their order.
        validation_share: Share of the sentences, those before the test part; in (0, 1).
        test_share: Share of the sentences, the last ones; in (0, 1). Both make whole sentences.
        min_count: Words that stand fewer times in the training part share one row, and so do all
            that do not stand there. 1: every word of the whole text has a row of its own, also
            one that training never sees, so that it can be scored.

    Raises:
        ArgumentError: `min_count` is below 1.
        DataError: A part has no example.
    """
    check_positive("min_count", min_count)
    total = sentences.num_sentences
    test_from = total - round(total * test_share)
    validation_from = test_from - round(total * validation_share)
    cuts = np.searchsorted(sentences.owners, [0, validation_from, test_from, total])
    rows, num_rows, num_rare = _assign_rows(sentences, int(cuts[1]), min_count)
    train, validation, test = (
        _cut(sentences.owners[start:stop], rows[start:stop])
        for start, stop in itertools.pairwise(cuts)
    )
    data = NextWordData(train, validation, test, num_rows, num_rare, sentences.num_words)
    for name, part in data.parts():
        if len(part.examples) == 0:
            raise DataError(
                f"The log must hold sentences of two words or more in each of three parts, got "
                f"none in the {name} part ({total} sentences in all)."
            )
    return data


def _assign_rows(
    sentences: Sentences, num_train: int, min_count: int
) -> tuple[NDArray[np.int64], int, int]:
    """Give each word of the text its row [N], the number of rows, and of words that share one."""
    if min_count == 1:
        return sentences.words, sentences.num_words, 0
    counts = np.bincount(sentences.words[:num_train], minlength=sentences.num_words)
    kept = counts >= min_count
    num_kept = int(kept.sum())
    row_of = np.where(kept, np.cumsum(kept) - 1, num_kept)
    num_rare = sentences.num_words - num_kept
    return row_of[sentences.words], num_kept + (num_rare > 0), num_rare


def _cut(owners: NDArray[np.int64], rows: NDArray[np.int64]) -> NextWords:
    """Make one part of sentences, which begin anew at 0."""
    events = Events(
        users=owners - owners[:1],
        items=rows,
        timestamps=np.arange(len(rows)),
        weights=None,
        context=FeatureTable.missing(FeatureSchema(()), len(rows)),
    )
    later = np.flatnonzero(owners[1:] == owners[:-1]) + 1
    return NextWords(events, later)
