"""Made-up columns for benchmarks."""

import numpy as np
from numpy.typing import NDArray

from recsys.data import Events, FeatureSchema, FeatureTable


def zipf_counts(num_items: int) -> NDArray[np.int64]:
    """Give counts of N items by Zipf's law, the rarest at 1; popular items stand anywhere.

    Returns:
        [N], int64.
    """
    ranks = np.random.default_rng(0).permutation(num_items) + 1
    return np.ceil(num_items / ranks).astype(np.int64)


def zipf_rows(num_items: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw item rows by those counts: [size], int64."""
    cumulative = np.cumsum(zipf_counts(num_items))
    return np.searchsorted(cumulative, rng.integers(cumulative[-1], size=size), side="right")


def make_events(
    *, num_rows: int, num_users: int, num_items: int, rng: np.random.Generator
) -> Events:
    """Make events in order, sorted by user, without weights or context."""
    return Events(
        users=np.sort(rng.integers(num_users, size=num_rows)),
        items=zipf_rows(num_items, num_rows, rng),
        timestamps=np.arange(num_rows, dtype=np.int64),
        weights=None,
        context=FeatureTable.missing(FeatureSchema(()), num_rows),
    )
