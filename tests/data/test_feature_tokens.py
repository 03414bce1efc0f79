"""Values of features as tokens: counts by hand, unknown ones left out, inverse frequencies."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from recsys.data import FeatureSpec, count_tokens, inverse_frequencies
from recsys.foundations import Ragged


def count(kind: str, size: int, column: Any) -> list[list[float]]:
    spec = FeatureSpec(name="x", kind=kind, size=size)
    return count_tokens(spec, column).toarray().tolist()  # type: ignore[no-any-return]


def make_lists() -> Ragged:
    """[2, 0, 2], [], [1]."""
    return Ragged(np.array([0, 3, 3, 4]), np.array([2, 0, 2, 1], dtype=np.int32))


@pytest.mark.parametrize("kind", ["categorical", "bucket"])
def test_a_category_is_one_token_and_an_unknown_one_is_none(kind: str) -> None:
    column = np.array([2, 0, 1], dtype=np.int32)
    assert count(kind, 3, column) == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_row_0_is_unknown_in_a_list_and_a_bucket_like_any_other_in_a_text() -> None:
    assert count("multi", 3, make_lists()) == [[0, 0, 2], [0, 0, 0], [0, 1, 0]]
    assert count("text", 3, make_lists()) == [[1, 0, 2], [0, 0, 0], [0, 1, 0]]


def test_a_token_weighs_the_log_of_all_rows_over_those_that_have_it() -> None:
    tokens = csr_array(np.array([[5.0, 1, 0], [2, 0, 0], [1, 0, 0], [1, 4, 0]]))
    found = inverse_frequencies(tokens)
    np.testing.assert_allclose(found, [0, np.log(4 / 2), np.log(4)])
