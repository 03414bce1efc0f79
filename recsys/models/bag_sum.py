"""Weighted sums of bags of rows, and products with them; gradients touch each row once.

Dimensions: B bags, L entries in all bags, R rows of the table, D embedding width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from recsys.foundations import Ahead
from recsys.models.grouped_rows import GroupedRows, WeightedEntries, bags_of, sparse_rows

_AT_ONCE = 16384  # entries multiplied at once


def bag_sum(table: Tensor, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    """Give sum(weight · table[row]) of each bag; the table's gradient is sparse.

    torch's own sparse gradient holds one [D] vector for each of the L entries, which the optimiser
    must then sort and add up. Here the backward pass is a bag sum too, over the transposed bags:
    for each row, the bags it stands in. Nothing of size L x D exists, and the gradient holds each
    row once.

    Args:
        table: [R, D].
        rows: [L], int64, in [0, R), the bags one behind the other.
        offsets: [B], int64, where each bag begins.
        weights: [L].

    Returns:
        [B, D]; zeros for an empty bag. Where it has a gradient, no argument may change in place
        before the backward pass.
    """
    apply: Callable[..., Tensor] = _BagSum.apply
    return apply(table, weights, (rows, offsets, torch.is_grad_enabled()))


def bag_sum_of_groups(
    vectors: Tensor, groups: GroupedRows, offsets: Tensor, weights: Tensor
) -> Tensor:
    """Give sum(weight · vector) of each bag, of vectors that stand once for each distinct row.

    Args:
        vectors: [n, D], those of `groups.rows`; their gradient is dense.
        groups: The L entries, the bags one behind the other.
        offsets: [B], int64, where each bag begins.
        weights: [L].

    Returns:
        [B, D]; zeros for an empty bag.
    """
    apply: Callable[..., Tensor] = _BagSumOfGroups.apply
    return apply(vectors, groups, offsets, weights)


def bag_dot(table: Tensor, rows: Tensor, offsets: Tensor, queries: Tensor) -> Tensor:
    """Give the inner product of each entry's row with the query of its bag.

    It is the gradient of `bag_sum` by its weights, and its own gradients are bag sums: the table's
    is sparse and holds each row once.

    Args:
        table: [R, D].
        rows: [L], int64, in [0, R), the bags one behind the other.
        offsets: [B], int64, where each bag begins.
        queries: [B, D].

    Returns:
        [L].
    """
    apply: Callable[..., Tensor] = _BagDot.apply
    return apply(table, rows, offsets, queries)


@dataclass(frozen=True)
class _ByRow:
    """The entries of bags, those of each row together.

    Attributes:
        rows: [R], int64, distinct and rising.
        entries: Of each row; each takes the vector of its bag.
    """

    rows: Tensor
    entries: WeightedEntries

    @classmethod
    def of(cls, rows: Tensor, offsets: Tensor, weights: Tensor) -> Self:
        """Bring them together."""
        groups = GroupedRows.of(rows)
        return cls(groups.rows, groups.weighted(bags_of(rows, offsets), weights))

    def sum(self, vectors: Tensor, shape: torch.Size) -> Tensor:
        """Sum weight · vector of the bag over the entries of each row: [R, D], sparse."""
        return sparse_rows(self.rows, self.entries.sum(vectors), shape)


class _BagSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, table: Tensor, weights: Tensor, how: tuple[Tensor, Tensor, bool]
    ) -> Tensor:
        rows, offsets, differentiable = how
        ctx.save_for_backward(table, rows, offsets)
        if differentiable and ctx.needs_input_grad[0]:
            by_row = partial(_ByRow.of, rows, offsets, weights)
            # Sorting takes as long as the sum itself, and waits for nothing but the rows.
            ctx.by_row = Ahead(by_row).get if table.device.type == "cpu" else by_row
        return _sum(table, rows, offsets, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        table, rows, offsets = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_table = of_weights = None
        if ctx.needs_input_grad[0]:
            of_table = ctx.by_row().sum(gradient, table.shape)
        if ctx.needs_input_grad[1]:
            of_weights = _dot(table, rows, offsets, gradient)
        return of_table, of_weights, None


class _BagSumOfGroups(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, groups: GroupedRows, offsets: Tensor, weights: Tensor
    ) -> Tensor:
        places = groups.places()
        ctx.save_for_backward(vectors, places, offsets, weights)
        ctx.groups = groups
        return _sum(vectors, places, offsets, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        vectors, places, offsets, weights = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_vectors = of_weights = None
        if ctx.needs_input_grad[0]:
            bags = bags_of(places, offsets)
            of_vectors = ctx.groups.weighted_sum(gradient, bags, weights)
        if ctx.needs_input_grad[3]:
            of_weights = _dot(vectors, places, offsets, gradient)
        return of_vectors, None, None, of_weights


class _BagDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, offsets: Tensor, queries: Tensor) -> Tensor:
        ctx.save_for_backward(table, rows, offsets, queries)
        return _dot(table, rows, offsets, queries)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        table, rows, offsets, queries = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_table = of_queries = None
        if ctx.needs_input_grad[0]:
            of_table = _ByRow.of(rows, offsets, gradient).sum(queries, table.shape)
        if ctx.needs_input_grad[3]:
            of_queries = _sum(table, rows, offsets, gradient)
        return of_table, None, None, of_queries


def _sum(table: Tensor, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    return functional.embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=weights)


def _dot(table: Tensor, rows: Tensor, offsets: Tensor, queries: Tensor) -> Tensor:
    """Multiply a part of the entries at a time: nothing of size L x D exists."""
    bags, parts = bags_of(rows, offsets), [queries.new_zeros(0)]
    for some_rows, some_bags in zip(rows.split(_AT_ONCE), bags.split(_AT_ONCE), strict=True):
        products = table.index_select(0, some_rows) * queries.index_select(0, some_bags)
        parts.append(products.sum(dim=1))
    return torch.cat(parts)
