"""What a part asks: one query a user, with what was known of the user before.

Dimensions: U users who have events in the part.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recsys.data import Events, FeatureTable, PreparedDataset, join_histories
from recsys.foundations import Ragged, check_choice, is_among
from recsys.metrics import distinct

PARTS = ("validation", "test")


@dataclass(frozen=True)
class EvaluationQueries:
    """U queries in the order of their user rows.

    Attributes:
        user_rows: [U], int64; at or above `num_users` where the user has no training events.
        histories: U lists of item rows, oldest first, candidates only.
        seen: U lists of distinct item rows; what `exclude_seen` leaves out.
        truth: U lists of distinct item rows, never empty; rows that are no candidates are kept, so
            that recall divides by all that the user chose.
        chosen: U lists of item rows, one for each event; `truth` without the repeats.
        context: U rows; that of the user's first event in the part.
        features: U rows; the users' features.
        known: [U], bool; whether the user has training events.
        history_times: U lists of int64, when each item of the histories was met, in µs. None: the
            data set's clock tells no time.
        num_without_relevant: Users of whom only the input of a fold-in is there, or who chose
            nothing that is ranked; they are not among the U.
        num_left_out: Relevant items that are not ranked and so left the truth.
        read: [U], bool; whether the model that is asked reads anything of the user, as
            `known_to_model` says. None: all that is there counts as read.
    """

    user_rows: NDArray[np.int64]
    histories: Ragged
    seen: Ragged
    truth: Ragged
    chosen: Ragged
    context: FeatureTable
    features: FeatureTable
    known: NDArray[np.bool_]
    history_times: Ragged | None = None
    num_without_relevant: int = 0
    num_left_out: int = 0
    read: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.user_rows)

    def take(self, positions: NDArray[np.int64]) -> "EvaluationQueries":
        """Take queries by position, in the order given."""
        return EvaluationQueries(
            self.user_rows[positions],
            self.histories.take(positions),
            self.seen.take(positions),
            self.truth.take(positions),
            self.chosen.take(positions),
            self.context.take(positions),
            self.features.take(positions),
            self.known[positions],
            None if self.history_times is None else self.history_times.take(positions),
            self.num_without_relevant,
            self.num_left_out,
            None if self.read is None else self.read[positions],
        )

    def judged_on(self, rows: NDArray[np.int64]) -> "EvaluationQueries":
        """Keep of the truth the item rows given; queries without any of them leave."""
        inside = is_among(self.truth.rows, rows)
        truth = Ragged.from_pairs(self.truth.owners()[inside], self.truth.rows[inside], len(self))
        asked = np.flatnonzero(truth.lengths)
        return replace(
            self.take(asked),
            truth=truth.take(asked),
            num_without_relevant=self.num_without_relevant + len(self) - len(asked),
            num_left_out=int((~inside).sum()),
        )

    def slice(self, start: int, stop: int) -> "EvaluationQueries":
        """Take the queries from start to before stop."""
        return self.take(np.arange(start, min(stop, len(self))))

    def nothing_known(self) -> NDArray[np.bool_]:
        """Tell of whom the model reads nothing: [U], bool; popular items are recommended instead.

        Where it is not said what the model reads: who has neither training events nor history nor
        features.
        """
        if self.read is not None:
            return ~self.read
        told = self.features.known(self.features.schema.names)
        return np.asarray(~self.known & (self.histories.lengths == 0) & ~told)

    def read_by(self, reads: "Reads | None") -> "EvaluationQueries":
        """Note of whom a model reads something; None: nothing is noted."""
        return self if reads is None else replace(self, read=reads(self))


Reads: TypeAlias = Callable[[EvaluationQueries], NDArray[np.bool_]]
"""Tells of which of U queries a model reads anything: [U], bool."""


def build_queries(dataset: PreparedDataset, part: str) -> EvaluationQueries:
    """Ask for what each user chose in a part.

    What is known of a user at `validation` is the training part, at `test` training and validation,
    and where the split holds users out the input part of those users.

    Args:
        dataset: The prepared data set.
        part: `validation` or `test`.

    Returns:
        One query for each user with events in the part; none where the part is empty.

    Raises:
        ArgumentError: `part` is another word.
    """
    check_choice("part", part, PARTS)
    asked = dataset.validation if part == "validation" else dataset.test
    held_out = dataset.validation_input if part == "validation" else dataset.test_input
    user_rows, first = np.unique(asked.users, return_index=True)
    user_rows = user_rows.astype(np.int64)
    if held_out is not None:
        sources, without = [held_out], int((~is_among(np.unique(held_out.users), user_rows)).sum())
    else:
        sources = [dataset.train] if part == "validation" else [dataset.train, dataset.validation]
        without = 0
    known = [events for events in sources if len(events)]
    chosen = _by_position(asked, user_rows)
    histories, times = join_histories(
        known, dataset.clock, len(dataset.users), dataset.num_items, users=user_rows
    )
    return EvaluationQueries(
        user_rows=user_rows,
        histories=histories,
        seen=distinct(histories),
        truth=distinct(chosen),
        chosen=chosen,
        context=asked.context.take(first),
        features=dataset.users.features.take(user_rows),
        known=user_rows < dataset.num_users,
        history_times=times,
        num_without_relevant=without,
    )


def history_rule(dataset: PreparedDataset, part: str) -> str:
    """Say in words what is known of a user at a part."""
    if (dataset.validation_input if part == "validation" else dataset.test_input) is not None:
        return "the input part of the held-out users"
    return "training" if part == "validation" else "training and validation"


def _by_position(events: Events, user_rows: NDArray[np.int64]) -> Ragged:
    counts = np.diff(np.append(np.searchsorted(events.users, user_rows), len(events)))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Ragged(offsets, events.items.astype(np.int64))
