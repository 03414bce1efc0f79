"""Kept vectors are those of their queries, in any block; others are embedded when asked for."""

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation import EvaluationQueries, build_queries
from recsys.training.kept_vectors import KeptVectors


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_each_query_has_its_own_vector_and_the_kept_ones_are_embedded_once(
    dataset: PreparedDataset, shape: tuple[int, ...]
) -> None:
    table = np.random.default_rng(0).normal(size=(len(dataset.users), *shape)).astype(np.float32)
    asked: list[int] = []

    def embed(block: EvaluationQueries) -> NDArray[np.float32]:
        asked.extend(block.user_rows.tolist())
        return table[block.user_rows]

    queries = build_queries(dataset, "validation")
    some = queries.take(np.arange(1, len(queries) - 5, 3))
    kept = KeptVectors(embed, some)
    assert asked == some.user_rows.tolist()
    for block in (some, queries.slice(0, 9), queries.slice(len(queries) - 2, len(queries))):
        asked.clear()
        np.testing.assert_array_equal(kept(block), table[block.user_rows])
        assert asked == [row for row in block.user_rows.tolist() if row not in some.user_rows]
