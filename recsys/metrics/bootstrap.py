"""Intervals of means over queries, by the bootstrap.

Dimensions: Q queries, M metrics, R resamples.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, ShapeError, check_positive, make_numpy_generator

_MOST_GROUPS = 10_000
_COUNTS_AT_ONCE = 4_000_000
_COUNTS_KEPT = 16_000_000  # two bytes each


class Interval(NamedTuple):
    """Lower and upper ends, each of the metrics' shape; NaN where nothing is defined."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def bootstrap_interval(
    values: NDArray[np.float64], seed: int, *, num: int = 1000, level: float = 0.95
) -> Interval:
    """Compute the percentile interval of the mean over queries.

    Queries are drawn with replacement, as many as there are; the same draws serve all metrics. Past
    10,000 queries they are first dealt at random into 10,000 groups and groups are drawn, which
    estimates the same variance at a bounded cost.

    Args:
        values: [Q] or [Q, M], one value a query; NaN means undefined and leaves that metric's mean.
        seed: Of the draws.
        num: Resamples; at least 1.
        level: Share of resampled means inside the interval; between 0 and 1.

    Returns:
        The ends, scalars (0-d) or [M].

    Raises:
        ArgumentError: `num` or `level` is out of range.
    """
    defined = np.isfinite(values)
    return bootstrap_ratio_interval(
        np.where(defined, values, 0.0), defined.astype(np.float64), seed, num=num, level=level
    )


def paired_difference_interval(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    seed: int,
    *,
    num: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Compute the interval of the mean of `first` - `second` over the same queries.

    Pairing takes out what makes a query easy or hard for both. An interval without 0 says that the
    one is better than the other. Arguments as for `bootstrap_interval`; a query that is undefined
    in one of the two leaves both.

    Raises:
        ShapeError: The shapes differ.
    """
    if first.shape != second.shape:
        raise ShapeError(f"`second` must have shape {list(first.shape)}, got {list(second.shape)}.")
    return bootstrap_interval(first - second, seed, num=num, level=level)


def bootstrap_ratio_interval(
    numerators: NDArray[np.float64],
    denominators: NDArray[np.float64],
    seed: int,
    *,
    num: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Compute the interval of sum(numerators) / sum(denominators) over queries.

    For rates that pool the queries, such as the recall of one slice of the catalogue, where a query
    counts as often as it has positives there.

    Args:
        numerators: [Q] or [Q, M], finite.
        denominators: [Q] or [Q, M], finite, at least 0.
        seed: Of the draws.
        num: Resamples; at least 1.
        level: Share of resampled ratios inside the interval; between 0 and 1.

    Returns:
        The ends, scalars (0-d) or [M]; NaN where the denominators sum to 0.

    Raises:
        ArgumentError: `num` or `level` is out of range.
        ShapeError: The shapes differ.
    """
    check_positive("num", num)
    if not 0 < level < 1:
        raise ArgumentError(f"`level` must be between 0 and 1, got {level}.")
    if numerators.shape != denominators.shape:
        raise ShapeError(
            f"`denominators` must have shape {list(numerators.shape)}, "
            f"got {list(denominators.shape)}."
        )
    trailing = numerators.shape[1:]
    width = int(np.prod(trailing))
    sums = np.concatenate(
        [part.reshape(len(part), width) for part in (numerators, denominators)], axis=1
    )  # [Q, 2 M]
    ratios = _resampled_ratios(sums, seed, num)  # [R, M]
    low, high = _quantiles(ratios, (1 - level) / 2)
    return Interval(low.reshape(trailing), high.reshape(trailing))


def _resampled_ratios(sums: NDArray[np.float64], seed: int, num: int) -> NDArray[np.float64]:
    size, width = min(len(sums), _MOST_GROUPS), sums.shape[1] // 2
    ratios = np.full((num, width), np.nan)
    if size == 0:
        return ratios
    draw = _kept_draws if num * size <= _COUNTS_KEPT else _draws
    drawn = iter(draw(seed, len(sums), num))
    sums = _dealt_into_groups(sums, next(drawn))
    start = 0
    for counts in drawn:
        totals = counts.astype(np.float64) @ sums  # [rows, 2 M]
        above, below = totals[:, :width], totals[:, width:]
        stop = start + len(counts)
        np.divide(above, below, out=ratios[start:stop], where=below > 0)
        start = stop
    return ratios


def _draws(seed: int, num_queries: int, num: int) -> Iterator[NDArray[Any]]:
    """Give an order of the queries, then how often each group is drawn, resamples in blocks."""
    generator = make_numpy_generator(seed, "bootstrap")
    if num_queries <= _MOST_GROUPS:
        yield np.arange(num_queries)
    else:
        yield generator.permutation(num_queries)
    size = min(num_queries, _MOST_GROUPS)
    step = max(1, _COUNTS_AT_ONCE // size)
    for start in range(0, num, step):
        rows = min(step, num - start)
        drawn = generator.integers(0, size, size=(rows, size))
        drawn += np.arange(rows)[:, None] * size
        counts = np.bincount(drawn.ravel(), minlength=rows * size)
        yield counts.reshape(rows, size).astype(np.uint16)


@lru_cache(maxsize=1)
def _kept_draws(seed: int, num_queries: int, num: int) -> tuple[NDArray[Any], ...]:
    """Keep the draws: a report asks for the same ones for each system and metric."""
    return tuple(_draws(seed, num_queries, num))


def _dealt_into_groups(sums: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum the rows of each of at most 10,000 random groups of (nearly) one size."""
    if len(sums) <= _MOST_GROUPS:
        return sums
    starts = np.linspace(0, len(sums), _MOST_GROUPS, endpoint=False).astype(np.int64)
    return np.add.reduceat(sums[order], starts, axis=0)


def _quantiles(ratios: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """Give the two quantiles of each column, [2, M], over the resamples that define it."""
    ends = np.full((2, ratios.shape[1]), np.nan)
    some = np.isfinite(ratios).any(axis=0)
    ends[:, some] = np.nanquantile(ratios[:, some], [tail, 1 - tail], axis=0)
    return ends
