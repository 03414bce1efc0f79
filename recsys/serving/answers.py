"""What a lookup gives.

Dimensions: B queries, M interests of a query, E width of the vectors.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index import Hits


@dataclass(frozen=True)
class Answers:
    """The answers to B queries.

    Attributes:
        query_ids: [B], large_string: the users or items asked about.
        item_ids: [hits.offsets[-1]], large_string: the id of each hit.
        hits: The lists; one may be empty.
        fallback: [B], bool: whether the list is that of the most popular items, since nothing is
            known of the user; its scores are training counts.
    """

    query_ids: pa.LargeStringArray
    item_ids: pa.LargeStringArray
    hits: Hits
    fallback: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.query_ids)

    def to_arrow(self, query_column: str, *, with_fallback: bool) -> pa.Table:
        """Give one row a hit: query, item_id, rank (int32, from 1), score (float32)."""
        owners = np.repeat(np.arange(len(self)), self.hits.lengths)
        columns = {
            query_column: self.query_ids.take(pa.array(owners)).cast(pa.string()),
            "item_id": self.item_ids.cast(pa.string()),
            "rank": pa.array(self.hits.ranks()),
            "score": pa.array(self.hits.scores),
        }
        if with_fallback:
            columns["fallback"] = pa.array(self.fallback[owners])
        return pa.table(columns)


def replace_hits(hits: Hits, others: Hits, replaced: NDArray[np.bool_]) -> Hits:
    """Replace the lists of those queries [B] that are marked by the others, in their order."""
    chosen = np.arange(len(hits))
    chosen[replaced] = len(hits) + np.arange(len(others))
    offsets = np.concatenate([hits.offsets, hits.offsets[-1] + others.offsets[1:]])
    lists = Ragged(offsets, np.arange(offsets[-1])).take(chosen)
    rows = np.concatenate([hits.candidate_rows, others.candidate_rows])[lists.rows]
    scores = np.concatenate([hits.scores, others.scores])[lists.rows]
    return Hits(lists.offsets, rows, scores)


def vector_table(name: str, ids: pa.LargeStringArray, vectors: NDArray[np.float32]) -> pa.Table:
    """Give ids and their vectors [B, E] as a table.

    Of vectors [B, M, E] there is a row for each of the M interests of an id, numbered from 0 by
    `interest` (int32).
    """
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1), pa.float32())
    lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[-1])
    if vectors.ndim == 2:
        return pa.table({name: ids.cast(pa.string()), "vector": lists})
    num_ids, num_interests, _ = vectors.shape
    owners = pa.array(np.repeat(np.arange(num_ids), num_interests))
    interests = np.tile(np.arange(num_interests, dtype=np.int32), num_ids)
    owned = ids.take(owners).cast(pa.string())
    return pa.table({name: owned, "interest": pa.array(interests), "vector": lists})
