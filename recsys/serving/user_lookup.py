"""Items for users.

Dimensions: B users of a block.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from recsys.bundle import Bundle
from recsys.evaluation import EvaluationQueries, bonus_of, embed_queries, own_items
from recsys.foundations import ArgumentError, Progress
from recsys.index import PopularityDial, Search, check_alpha, search_with_bonus
from recsys.metrics import log_popularity
from recsys.serving.answers import Answers, replace_hits, vector_table
from recsys.serving.frames import Frame
from recsys.serving.given_columns import GivenColumns
from recsys.serving.given_histories import GivenHistories, Histories
from recsys.serving.ids import Ids, as_ids
from recsys.serving.item_filter import ItemFilter, ItemFilters, popular_hits
from recsys.serving.known_users import KnownUsers
from recsys.serving.lists import concatenated, repeated
from recsys.serving.without_rows import without_rows

USERS_AT_ONCE = 8192
_ITEMS_AT_ONCE = 1 << 22  # of all users of a block; a row of the answer takes about 50 bytes


@dataclass(frozen=True, kw_only=True)
class UserRequest:
    """What is asked for many users at once.

    Attributes:
        k: Items for each user, at least 1; lists are shorter only where fewer items remain.
        exclude_seen: Whether the items of the stored and of the given history are left out; None:
            as the data set was prepared.
        exact: Whether every item is scored; else the index is asked.
        popularity_alpha: Popularity dial, from -10 to 10: items are ranked by ``score - alpha *
            temperature * log(popularity)``. Above 0 less popular items rise, below 0 more popular
            ones; at other values than 0 every item is scored.
        histories: In place of the stored history of the users they hold; a log or table of
            `user_id`, `item_id` and perhaps `timestamp`, or lists of item ids, oldest first, by
            user.
        features: `user_id` and feature columns, in place of the stored features of its users.
        context: `user_id` and context columns; a user without a row has its context missing.
        exclude: Ids of items that nobody gets; unknown ones exclude nothing.
        allowed: Ids of the only items that may be given; unknown ones allow nothing. None: all.
        where: An expression over item columns, such as ``price <= 10``: only items for which it
            holds may be given. None: all.
    """

    k: int
    exclude_seen: bool | None = None
    exact: bool = False
    popularity_alpha: float = 0.0
    histories: Histories | None = None
    features: Frame | None = None
    context: Frame | None = None
    exclude: Ids | None = None
    allowed: Ids | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ArgumentError(f"`k` must be at least 1, got {self.k}.")
        check_alpha("popularity_alpha", self.popularity_alpha)


@dataclass(frozen=True)
class _Given:
    """What the caller of a request tells of users, as `KnownUsers.queries` takes it."""

    histories: GivenHistories | None
    features: GivenColumns | None
    context: GivenColumns | None


class UserLookup:
    """Answers for users.

    Args:
        bundle: The bundle.
        filters: Of its items.
    """

    def __init__(self, bundle: Bundle, filters: ItemFilters) -> None:
        self._bundle, self._filters = bundle, filters
        self._users, self._bonus = KnownUsers(bundle), bonus_of(bundle.model)
        self._dial = PopularityDial(
            bundle.item_vectors,
            log_popularity(bundle.item_counts),
            float(bundle.model.temperature().detach()),
        )

    def recommend(self, users: Ids | None, request: UserRequest) -> Iterator[Answers]:
        """Answer users a block at a time; see `Lookup.recommend`."""
        given = self._given(request)
        ids = self._ids(users, given.histories)
        items = self._filters.make(
            exclude=request.exclude, allowed=request.allowed, where=request.where
        )
        longest = min(request.k, self._bundle.num_items)
        step = max(min(USERS_AT_ONCE, _ITEMS_AT_ONCE // max(longest, 1)), 1)
        with Progress("recommending", len(ids), "users") as progress:
            for start in range(0, max(len(ids), 1), step):
                block = ids.slice(start, step)
                queries = self._users.queries(block, **vars(given))
                yield self._answer(block, queries, request, items)
                progress.advance(len(block))

    def embed(self, users: Ids | None, request: UserRequest) -> pa.Table:
        """Embed users; see `Lookup.embed_users`."""
        given = self._given(request)
        ids = self._ids(users, given.histories)
        queries = self._users.queries(ids, **vars(given))
        return vector_table("user_id", ids, embed_queries(self._bundle.model, queries))

    def query(self, user: str, request: UserRequest) -> EvaluationQueries:
        """Put together what is known of one user, as `recommend` does: one query."""
        return self._users.queries(as_ids([user]), **vars(self._given(request)))

    def _given(self, request: UserRequest) -> "_Given":
        """Read what the caller gives, once for all blocks."""
        bundle, features, context = self._bundle, request.features, request.context
        schema = bundle.users.features.schema
        return _Given(
            None if request.histories is None else GivenHistories(request.histories, bundle),
            None if features is None else GivenColumns("features", features, schema),
            None if context is None else GivenColumns("context", context, bundle.context_schema),
        )

    def _ids(self, users: Ids | None, given: GivenHistories | None) -> pa.LargeStringArray:
        if users is not None:
            return as_ids(users).unique()
        return self._bundle.users.vocabulary.ids if given is None else given.users.ids

    def _answer(
        self,
        ids: pa.LargeStringArray,
        queries: EvaluationQueries,
        request: UserRequest,
        items: ItemFilter,
    ) -> Answers:
        bundle = self._bundle
        exclude = repeated(items.excluded, len(ids))
        asked = request.exclude_seen
        leave_seen = bundle.exclude_seen if asked is None else asked
        if leave_seen:
            exclude = concatenated(queries.seen, exclude)
        vectors = embed_queries(bundle.model, queries)
        own = own_items(self._bonus, queries, exclude_seen=leave_seen)
        hits = search_with_bonus(
            self._search(request), vectors, request.k, own, exclude=exclude, allowed=items.allowed
        )
        fallback = queries.nothing_known()
        if fallback.any():
            theirs = exclude.take(np.flatnonzero(fallback))
            hits = replace_hits(hits, popular_hits(bundle, request.k, theirs, items), fallback)
        return Answers(ids, bundle.items.vocabulary.ids_of(hits.candidate_rows), hits, fallback)

    def _search(self, request: UserRequest) -> Search:
        """Give what finds items for vectors, as the request says."""
        if request.popularity_alpha != 0:
            dialled = partial(self._dial.search, alpha=request.popularity_alpha)
            return without_rows(dialled, self._bundle.withdrawn, self._bundle.num_items)
        return self._bundle.exact.search if request.exact else self._bundle.index.search
