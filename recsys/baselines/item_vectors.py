"""Item features as vectors whose cosine says how alike two items are.

Dimensions: N candidates, F tokens of all features.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from recsys.data import FeatureSpec, FeatureTable
from recsys.foundations import Ragged

_NUM_BINS = 16  # of a number, by quantile


def item_vectors(features: FeatureTable, num_items: int) -> csr_array:
    """Turn the features of the candidates into vectors of length 1.

    Every value of a feature is a token: a category, each of several values, a hashed n-gram of a
    text, the quantile of a number. An item's weight in a token that it has is ``ln(N / candidates
    that have it)``, in the others 0. Vectors that are given as a feature are brought to the length
    that the tokens have on average and stand beside them.

    Args:
        features: Encoded; rows from N on are not read.
        num_items: N.

    Returns:
        [N, F], float64; a row of zeros where nothing is known of an item, or only what all have.
    """
    specs = list(features.schema)
    tokens = [_tokens(spec, features.columns[spec.name], num_items) for spec in specs]
    parts = [part for part in tokens if part is not None]
    weighted = _tf_idf(hstack(parts, format="csr")) if parts else csr_array((num_items, 0))
    lengths = _lengths(weighted)
    usual = float(lengths[lengths > 0].mean()) if lengths.any() else 1.0
    given = [
        usual * _unit(csr_array(np.asarray(features.columns[spec.name], np.float64)[:num_items]))
        for spec in specs
        if spec.kind == "vector"
    ]
    return _unit(hstack([weighted, *given], format="csr"))


def _tokens(spec: FeatureSpec, column: Any, num_items: int) -> csr_array | None:
    """Give which token each item has: [N, tokens], 1 where it has it; None for a vector."""
    match spec.kind:
        case "vector":
            return None
        case "text" | "multi":
            lists: Ragged = column.slice(0, num_items)
            items, values = lists.owners(), lists.rows.astype(np.int64)
        case "numeric":
            values, width = _bins(column[:num_items])
            return _mark(np.arange(num_items), values, (num_items, width + 1))
        case _:
            items, values = np.arange(num_items), column[:num_items].astype(np.int64)
    if spec.kind == "text":  # row 0 is a bucket like any other
        values = values + 1
    return _mark(items, values, (num_items, spec.size + 1))


def _mark(items: NDArray[np.int64], values: NDArray[np.int64], shape: tuple[int, int]) -> csr_array:
    """Put 1 where an item has a value; value 0 is the unknown one and marks nothing."""
    known = values > 0
    matrix = csr_array((np.ones(known.sum()), (items[known], values[known])), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _bins(numbers: NDArray[np.float32]) -> tuple[NDArray[np.int64], int]:
    """Give the quantile of each number from 1 on, 0 where it is missing, and how many there are."""
    missing = np.isnan(numbers)
    if missing.all():
        return np.zeros(len(numbers), np.int64), 1
    edges = np.unique(np.quantile(numbers[~missing], np.arange(1, _NUM_BINS) / _NUM_BINS))
    places = 1 + np.searchsorted(edges, numbers, side="right")
    return np.where(missing, 0, places).astype(np.int64), len(edges) + 1


def _tf_idf(tokens: csr_array) -> csr_array:
    counts = np.bincount(tokens.indices, minlength=tokens.shape[1])
    weights = np.log(tokens.shape[0] / np.maximum(counts, 1))
    return csr_array(tokens @ diags_array(weights))


def _unit(matrix: csr_array) -> csr_array:
    lengths = _lengths(matrix)
    return csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ matrix)


def _lengths(matrix: csr_array) -> NDArray[np.float64]:
    return np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel())
