"""Lookups in a bundle, without HTTP: items for users and why, neighbours of items, and vectors.

Dimensions: E width of the vectors.
"""

from collections.abc import Iterator

import pyarrow as pa

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError
from recsys.serving.answers import Answers
from recsys.serving.explain_lookup import ExplainLookup
from recsys.serving.explanations import Explanations
from recsys.serving.frames import Frame
from recsys.serving.given_histories import Histories
from recsys.serving.ids import Ids, as_ids
from recsys.serving.item_filter import ItemFilters
from recsys.serving.item_lookup import ItemLookup
from recsys.serving.user_lookup import UserLookup, UserRequest


class Lookup:
    """Answers from a bundle.

    Nothing depends on how queries are batched: a user gets the same items with the same scores,
    alone or among a million.

    Args:
        bundle: As `read_bundle` gave it.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        filters = ItemFilters(bundle)
        self._users, self._items = UserLookup(bundle, filters), ItemLookup(bundle, filters)
        self._explain = ExplainLookup(bundle)
        if bundle.model.spec.histories_read_tower:  # now, and not when the first user asks
            bundle.model.keep_history_vectors()

    def recommend(
        self,
        users: Ids | None = None,
        *,
        k: int,
        exclude_seen: bool | None = None,
        exact: bool = False,
        popularity_alpha: float = 0.0,
        histories: Histories | None = None,
        features: Frame | None = None,
        context: Frame | None = None,
        exclude: Ids | None = None,
        allowed: Ids | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """Find the best items of users.

        A user of whom nothing is known (no training event, no history, no feature) gets the most
        popular items, marked by `fallback`, with training counts as scores.

        Args:
            users: Ids, each answered once, in the order of their first mention. None: the users of
                `histories`, or without them every user that the bundle holds.
            k: At least 1; lists are shorter only where fewer items remain.
            exclude_seen: As in `UserRequest`, like all that follows.
            exact: Whether every item is scored.
            popularity_alpha: Above 0 less popular items rise, below 0 more popular ones. Lists of
                users of whom nothing is known stay as they are.
            histories: In place of the stored ones.
            features: In place of the stored ones.
            context: Of the interaction itself.
            exclude: Items that nobody gets.
            allowed: The only items that may be given.
            where: Only items for which this expression over item columns holds may be given.

        Returns:
            user_id string, item_id string, rank int32 from 1, score float32, fallback bool; users
            in order, ranks rising. A user for whom no item remains has no row.

        Raises:
            ArgumentError: ``k`` is below 1, ``popularity_alpha`` out of range, ids are no ids, or
                ``where`` is no expression over item columns that the bundle keeps.
            DataError: A table lacks a column or holds what it should not.
        """
        request = UserRequest(
            k=k,
            exclude_seen=exclude_seen,
            exact=exact,
            popularity_alpha=popularity_alpha,
            histories=histories,
            features=features,
            context=context,
            exclude=exclude,
            allowed=allowed,
            where=where,
        )
        return _joined(self.recommend_blocks(users, request), "user_id", with_fallback=True)

    def recommend_blocks(self, users: Ids | None, request: UserRequest) -> Iterator[Answers]:
        """Give what `recommend` gives, a block of users at a time, so that memory is bounded.

        There is always a first block, of no users where there are none.
        """
        return self._users.recommend(users, request)

    def neighbours(
        self,
        items: Ids | None = None,
        *,
        k: int,
        exact: bool = False,
        exclude: Ids | None = None,
        allowed: Ids | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """Find the items whose vectors have the largest inner product with an item's.

        An item is never its own neighbour. Learned biases of items play no part.

        Args:
            items: Ids, each answered once, in the order of their first mention; None: every item.
            k: At least 1; lists are shorter only where fewer items remain.
            exact: Whether every item is scored; else the index is asked.
            exclude: Ids of items that are not wanted; unknown ones exclude nothing.
            allowed: Ids of the only items wanted; unknown ones allow nothing. None: all.
            where: Only items for which this expression over item columns holds are wanted.

        Returns:
            query_item_id string, item_id string, rank int32 from 1, score float32.

        Raises:
            UnknownIdError: An item has no vector; the message names it.
            ArgumentError: ``k`` is below 1, ids are no ids, or ``where`` is as in `recommend`.
        """
        blocks = self.neighbour_blocks(
            items, k=k, exact=exact, exclude=exclude, allowed=allowed, where=where
        )
        return _joined(blocks, "query_item_id", with_fallback=False)

    def neighbour_blocks(
        self,
        items: Ids | None,
        *,
        k: int,
        exact: bool = False,
        exclude: Ids | None = None,
        allowed: Ids | None = None,
        where: str | None = None,
    ) -> Iterator[Answers]:
        """Give what `neighbours` gives, a block of items at a time."""
        return self._items.neighbours(
            items, k=k, exact=exact, exclude=exclude, allowed=allowed, where=where
        )

    def explain(
        self,
        user: str,
        items: Ids | None = None,
        *,
        k: int = 3,
        num_history: int | None = None,
        where: str | None = None,
        histories: Histories | None = None,
        features: Frame | None = None,
        context: Frame | None = None,
    ) -> Explanations:
        """Explain the scores of items for a user: by likeness to the history, and piece by piece.

        Args:
            user: An id, which the bundle need not hold.
            items: Ids, each explained once; None: the k items that `recommend` gives.
            k: At least 1; is not read where items are given.
            num_history: Items of the history named for each item, the most similar; None: all.
            where: As in `recommend`, for the items that it gives; None where items are given.
            histories: As in `recommend`, like all that follows.
            features: In place of the stored ones.
            context: Of the interaction itself.

        Returns:
            Three tables, as `Explanations` has them.

        Raises:
            UnknownIdError: An item has no vector; the message names it.
            ArgumentError: ``k`` or ``num_history`` is too small, ids are no ids, or
                ``where`` is as in `recommend` or stands beside items.
            DataError: A table lacks a column or holds what it should not.
        """
        if items is not None and where is not None:
            raise ArgumentError("`where` chooses items to explain: it cannot stand beside `items`.")
        request = UserRequest(
            k=k, histories=histories, features=features, context=context, where=where
        )
        if items is None:
            items = pa.chunked_array(
                [one.item_ids for one in self.recommend_blocks([user], request)], pa.large_string()
            )
        rows = self._items.rows(as_ids(items).unique())
        return self._explain.explain(self._users.query(user, request), rows, num_history)

    def embed_users(
        self,
        users: Ids | None = None,
        *,
        histories: Histories | None = None,
        features: Frame | None = None,
        context: Frame | None = None,
    ) -> pa.Table:
        """Embed users; arguments as in `recommend`.

        Returns:
            user_id string, vector fixed_size_list<float32>[E]. With an item bias the number behind
            the towers' is 1, which meets the bias in an item's vector; those of a ridge part stand
            behind it. Of a model with several interests each user has as many rows, numbered from 0
            by interest int32; the score of an item is the largest over them. What `Repeats` adds to
            the scores of items that the user had is in no vector.
        """
        request = UserRequest(k=1, histories=histories, features=features, context=context)
        return self._users.embed(users, request)

    def embed_items(self, items: Ids | Frame | None = None) -> pa.Table:
        """Embed items.

        Args:
            items: Ids of items that have a vector; or a table of `item_id` and feature columns,
                which may hold items that the model never saw; None: every item.

        Returns:
            item_id string, vector fixed_size_list<float32>[E].

        Raises:
            UnknownIdError: An id has no vector, and no features are given.
            DataError: The table holds what it should not.
        """
        return self._items.embed(items)

    def describe_items(self, items: Ids) -> pa.Table:
        """Give what people are shown of items: item_id and the display columns, the title first.

        Raises:
            UnknownIdError: The bundle does not hold an item.
        """
        return self._items.describe(items)


def _joined(blocks: Iterator[Answers], query_column: str, *, with_fallback: bool) -> pa.Table:
    tables = [block.to_arrow(query_column, with_fallback=with_fallback) for block in blocks]
    return pa.concat_tables(tables).combine_chunks()
