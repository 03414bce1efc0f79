"""Item features as vectors whose cosine says how alike two items are.

Dimensions: N candidates, F tokens of all features.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from recsys.data import (
    FeatureSpec,
    FeatureTable,
    count_tokens,
    inverse_frequencies,
    row_lengths,
    unit_rows,
)
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
    weighted = csr_array((num_items, 0))
    if parts:
        marks = hstack(parts, format="csr")
        weighted = csr_array(marks @ diags_array(inverse_frequencies(marks)))
    lengths = row_lengths(weighted)
    usual = float(lengths[lengths > 0].mean()) if lengths.any() else 1.0
    given = [
        usual
        * unit_rows(csr_array(np.asarray(features.columns[spec.name], np.float64)[:num_items]))
        for spec in specs
        if spec.kind == "vector"
    ]
    return unit_rows(hstack([weighted, *given], format="csr"))


def _tokens(spec: FeatureSpec, column: Any, num_items: int) -> csr_array | None:
    """Give which token each item has: [N, tokens], 1 where it has it; None for a vector."""
    if spec.kind == "vector":
        return None
    column = column.slice(0, num_items) if isinstance(column, Ragged) else column[:num_items]
    if spec.kind == "numeric":
        values, width = _bins(column)
        spec, column = FeatureSpec(name=spec.name, kind="bucket", size=width + 1), values
    tokens = count_tokens(spec, column)
    tokens.data[:] = 1
    return tokens


def _bins(numbers: NDArray[np.float32]) -> tuple[NDArray[np.int64], int]:
    """Give the quantile of each number from 1 on, 0 where it is missing, and how many there are."""
    missing = np.isnan(numbers)
    if missing.all():
        return np.zeros(len(numbers), np.int64), 1
    edges = np.unique(np.quantile(numbers[~missing], np.arange(1, _NUM_BINS) / _NUM_BINS))
    places = 1 + np.searchsorted(edges, numbers, side="right")
    return np.where(missing, 0, places).astype(np.int64), len(edges) + 1
