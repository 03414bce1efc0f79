"""Singular vectors of sparse matrices against numpy's of dense ones."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from recsys.models.leading_directions import leading_directions


def make_matrix(num_rows: int, num_columns: int, rank: int) -> NDArray[np.float64]:
    random = np.random.default_rng(0)
    left = random.standard_normal((num_rows, rank)) * 2.0 ** -np.arange(rank)
    return np.asarray(left @ random.standard_normal((rank, num_columns)))


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
@pytest.mark.parametrize("num_directions", [3, 11, 12, 40])
def test_directions_are_those_of_a_dense_decomposition(
    shape: tuple[int, int], num_directions: int
) -> None:
    matrix = make_matrix(*shape, rank=12)
    found = leading_directions(csr_array(matrix), num_directions)
    expected = np.linalg.svd(matrix)[2][: min(num_directions, 12)].T
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.abs((found * expected).sum(axis=0)), 1, atol=1e-6)


@pytest.mark.parametrize("num_directions", [2, 4, 8, 60])
@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_there_are_no_more_directions_than_the_rank(
    num_directions: int, shape: tuple[int, int]
) -> None:
    matrix = make_matrix(*shape, rank=4)
    found = leading_directions(csr_array(matrix), num_directions)
    assert found.shape == (shape[1], min(num_directions, 4))
    np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-6)


def test_the_same_matrix_has_the_same_directions() -> None:
    matrix = csr_array(make_matrix(50, 40, rank=20))
    np.testing.assert_array_equal(leading_directions(matrix, 6), leading_directions(matrix, 6))
