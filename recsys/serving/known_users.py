"""From user ids to queries: what the bundle knows of users, and what a caller adds.

Dimensions: B users asked about.
"""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import FeatureTable
from recsys.evaluation import EvaluationQueries, known_to_model
from recsys.foundations import Ragged
from recsys.metrics import distinct
from recsys.serving.given_columns import GivenColumns
from recsys.serving.given_histories import GivenHistories
from recsys.serving.lists import chosen, concatenated, with_empty_list


class KnownUsers:
    """The users of a bundle.

    Args:
        bundle: The bundle.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._stored = with_empty_list(bundle.histories)
        times = bundle.history_times
        self._stored_times = None if times is None else with_empty_list(times)

    def queries(
        self,
        users: pa.LargeStringArray,
        *,
        histories: GivenHistories | None,
        features: GivenColumns | None,
        context: GivenColumns | None,
    ) -> EvaluationQueries:
        """Put together what is known of B users.

        Args:
            users: [B], ids; one that the bundle does not hold is no error.
            histories: Stand in place of the stored ones of the users that they hold; what both
                hold counts as seen.
            features: Stand in place of the stored features of the users that they hold.
            context: Missing for users without a row.

        Returns:
            B queries that have chosen nothing yet.
        """
        rows = self._bundle.users.vocabulary.rows(users)
        stored = self._stored.take(rows)  # row -1: the empty list
        times = None if self._stored_times is None else self._stored_times.take(rows)
        recent = seen = Ragged(stored.offsets, stored.rows.astype(np.int64))
        if histories is not None:
            places = histories.users.rows(users)
            given = histories.lists.take(places)
            recent, seen = chosen(stored, given, places >= 0), concatenated(stored, given)
            if times is not None:
                times = chosen(times, histories.times.take(places), places >= 0)
        queries = EvaluationQueries(
            user_rows=rows,
            histories=recent,
            seen=distinct(seen),
            truth=Ragged.empty(len(users)),
            chosen=Ragged.empty(len(users)),
            context=self._context(users, context),
            features=self._features(users, rows, features),
            known=(rows >= 0) & (rows < self._bundle.num_users),
            history_times=times,
        )
        return queries.read_by(partial(known_to_model, self._bundle.model))

    def _features(
        self, users: pa.LargeStringArray, rows: NDArray[np.int64], given: GivenColumns | None
    ) -> FeatureTable:
        stored = self._bundle.users.features.take(rows)
        if given is None:
            return stored
        places = given.users.rows(users)
        return _overlaid(stored, given.table.take(places), places >= 0)

    def _context(self, users: pa.LargeStringArray, given: GivenColumns | None) -> FeatureTable:
        if given is None:
            return FeatureTable.missing(self._bundle.context_schema, len(users))
        return given.table.take(given.users.rows(users))


def _overlaid(stored: FeatureTable, given: FeatureTable, there: NDArray[np.bool_]) -> FeatureTable:
    """Take row b as given where it is there, else as stored."""
    columns: dict[str, Any] = {}
    for name, column in stored.columns.items():
        fresh = given.columns[name]
        if isinstance(column, Ragged) and isinstance(fresh, Ragged):
            lists = chosen(column, fresh, there)
            columns[name] = Ragged(lists.offsets, lists.rows.astype(np.int32))
        elif isinstance(column, np.ndarray) and isinstance(fresh, np.ndarray):
            marks = there.reshape(-1, *([1] * (column.ndim - 1)))  # [B] or [B, 1]
            columns[name] = np.where(marks, fresh, column)
    return FeatureTable(stored.schema, columns, len(stored))
