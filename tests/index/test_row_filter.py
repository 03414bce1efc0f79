"""Which fetched candidates a query excludes, against sets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.foundations import Ragged
from recsys.index.row_filter import RowFilter


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    count=st.sampled_from([1, 7, 64, 1000, 2**20]),
    num_queries=st.integers(1, 12),
    excluded=st.integers(0, 300),
    popular=st.booleans(),
)
def test_finds_the_excluded_among_the_fetched(
    seed: int, count: int, num_queries: int, excluded: int, popular: bool
) -> None:
    rng = np.random.default_rng(seed)
    reach = min(count, 20) if popular else count  # popular rows are excluded by most queries
    owners = rng.integers(0, num_queries, excluded)
    rows = rng.integers(0, reach + 3, excluded)  # some twice, some beyond the catalogue
    lists = Ragged.from_pairs(owners, rows.astype(np.uint64), num_queries)
    queries = rng.permutation(num_queries)[: max(num_queries // 2, 1)]
    queries.sort()
    known = np.array([rng.choice(reach, min(reach, 25), replace=False) for _ in queries])
    known[rng.random(known.shape) < 0.2] = -1  # FAISS found no more
    fetched = np.sort(known, axis=1)
    found = RowFilter(num_queries, count, lists, None).excluded_among(queries, fetched)
    slow = [
        [int(row) in set(lists[query].tolist()) for row in line]
        for query, line in zip(queries, fetched, strict=True)
    ]
    there = fetched >= 0
    assert np.array_equal(found[there], np.array(slow)[there])
