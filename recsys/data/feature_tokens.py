"""The values of features as tokens: how often each row of a table has each of them.

Dimensions: N rows, V tokens of one feature.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from recsys.data.feature_schema import FeatureSpec

TOKEN_KINDS = ("categorical", "multi", "bucket", "text")


def count_tokens(spec: FeatureSpec, column: Any) -> csr_array:
    """Count the known values of a feature of one of the `TOKEN_KINDS`.

    Args:
        spec: The feature.
        column: N rows of it; see `FeatureTable`.

    Returns:
        [N, V] with V = `spec.size`, float64. Column t counts category, value or hash bucket t. But
        for a text, column 0 stands for unknown values, which are no token: it is empty.
    """
    if spec.kind in ("multi", "text"):
        rows, values = column.owners(), column.rows.astype(np.int64)
    else:
        rows, values = np.arange(len(column)), column.astype(np.int64)
    known = np.full(len(values), True) if spec.kind == "text" else values > 0
    places = (rows[known], values[known])
    counts = csr_array((np.ones(known.sum()), places), shape=(len(column), spec.size))
    counts.sum_duplicates()
    return counts


def inverse_frequencies(tokens: csr_array) -> NDArray[np.float64]:
    """Give ``ln(N / rows that have it)`` of each token: [V]; one that no row has counts as 1 row.

    Args:
        tokens: [N, V], at most one entry for a row and a token.
    """
    counts = np.bincount(tokens.indices, minlength=tokens.shape[1])
    inverse: NDArray[np.float64] = np.log(tokens.shape[0] / np.maximum(counts, 1))
    return inverse


def row_lengths(matrix: csr_array) -> NDArray[np.float64]:
    """Give the Euclidean length of each row of [N, V]: [N]."""
    return np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel())


def unit_rows(matrix: csr_array) -> csr_array:
    """Bring the rows of [N, V] to length 1; rows of zeros stay."""
    lengths = row_lengths(matrix)
    return csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ matrix)
