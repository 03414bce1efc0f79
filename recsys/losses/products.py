"""The three matrix products of a sum over logits: the logits, and both sides' gradients.

Dimensions: B queries, K candidates, D embedding width; b and k of a block.
"""

import copy
from typing import Protocol

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, linear

_SHIFT_COLUMNS = 256  # so many candidates tell about how large a row's largest logit is


class Products(Protocol):
    """What a block of logits is made of, and what its slopes make of it."""

    def logits(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor | None]:
        """Give ``<query, candidate> + offset`` less a number for each row: [b, k], and it: [b].

        The number is None where it is 0. What is given may be overwritten, and is by the next call.
        """
        ...

    def prepare(self, slopes: Tensor) -> Tensor:
        """Give [b, k] slopes as the products take them."""
        ...

    def of_queries(self, slopes: Tensor, columns: slice) -> Tensor:
        """Sum the candidates by prepared slopes: [b, D]."""
        ...

    def of_candidates(self, slopes: Tensor, rows: slice, weights: Tensor) -> Tensor:
        """Sum the queries, each times its weight [b], by prepared slopes: [D, k]."""
        ...

    def alone(self) -> "Products":
        """Give products of the same factors that another thread may call at the same time."""
        ...


class PlainProducts:
    """Products in the precision of what is given.

    Args:
        queries: [B, D], float32 or wider.
        candidates: [K, D], same dtype.
        offsets: [K], same dtype, or None.
    """

    def __init__(self, queries: Tensor, candidates: Tensor, offsets: Tensor | None) -> None:
        self._queries, self._candidates = queries.contiguous(), candidates.contiguous()
        self._offsets = offsets

    def logits(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor | None]:
        """Give the logits as they are."""
        offsets = None if self._offsets is None else self._offsets[columns]
        return linear(self._queries[rows], self._candidates[columns], offsets), None

    def prepare(self, slopes: Tensor) -> Tensor:
        """Give the slopes as they are."""
        return slopes

    def of_queries(self, slopes: Tensor, columns: slice) -> Tensor:
        """Sum the candidates."""
        return linear(slopes, self._candidates[columns].T)

    def of_candidates(self, slopes: Tensor, rows: slice, weights: Tensor) -> Tensor:
        """Sum the queries."""
        return linear((self._queries[rows] * weights[:, None]).T, slopes.T)

    def alone(self) -> "PlainProducts":
        """Give these: they hold nothing between calls."""
        return self


class RoundedProducts:
    """Products of factors rounded to bfloat16; sums in float32 within a product.

    A product's result is rounded, too. Of a logit that would be a share of its size, which may be
    large. So a bound of about the row's largest logit is subtracted within the product, and the
    largest logits, which carry the softmax, are rounded least.

    Args:
        queries: [B, D], float32.
        candidates: [K, D], float32.
        offsets: [K], float32, or None; -inf excludes a candidate.
        dtype: What is rounded to.
    """

    def __init__(
        self, queries: Tensor, candidates: Tensor, offsets: Tensor | None, dtype: torch.dtype
    ) -> None:
        self._queries, self._candidates = queries.to(dtype), candidates.to(dtype)
        self._few = candidates, offsets
        ones = self._candidates.new_ones(len(candidates), 1)
        more = [-ones]
        if offsets is not None:  # in two parts, which together have the precision of float32's half
            high = offsets.to(dtype)
            # Of -inf, which excludes a candidate, nothing is left over; the difference is NaN.
            low = (offsets - high).masked_fill(offsets == float("-inf"), 0).to(dtype)
            more += [high[:, None], low[:, None]]
        self._right = torch.cat([self._candidates, *more], dim=1)  # [K, D + 1 or D + 3]
        self._wide = queries.new_empty(0)
        self._narrow = self._queries.new_empty(0)

    def logits(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor | None]:
        """Give the logits less what is about the largest of each row."""
        queries, right = self._queries[rows], self._right[columns]
        shift = self._bound(queries, columns)  # [b]
        num_offsets = right.shape[1] - queries.shape[1] - 1
        ones = queries.new_ones(len(queries), num_offsets)
        left = torch.cat([queries, shift[:, None], ones], dim=1)
        rounded, wide = self._buffers(len(queries), len(right))
        torch.mm(left, right.T, out=rounded)
        return wide.copy_(rounded), shift.to(wide.dtype)

    def prepare(self, slopes: Tensor) -> Tensor:
        """Round the slopes."""
        rounded, _ = self._buffers(*slopes.shape)
        return rounded.copy_(slopes)

    def of_queries(self, slopes: Tensor, columns: slice) -> Tensor:
        """Sum the candidates."""
        return torch.mm(slopes, self._candidates[columns])

    def of_candidates(self, slopes: Tensor, rows: slice, weights: Tensor) -> Tensor:
        """Sum the queries."""
        return torch.mm((self._queries[rows] * weights[:, None]).to(slopes.dtype).T, slopes)

    def alone(self) -> "RoundedProducts":
        """Give a copy with memory of its own for blocks."""
        other = copy.copy(self)
        other._wide, other._narrow = self._wide.new_empty(0), self._narrow.new_empty(0)
        return other

    def _bound(self, queries: Tensor, columns: slice) -> Tensor:
        few = slice(columns.start, min(columns.start + _SHIFT_COLUMNS, columns.stop))
        scores = torch.mm(queries, self._candidates[few].T)
        _, offsets = self._few
        if offsets is None:
            return scores.amax(dim=1)
        bound = (scores + offsets[few]).amax(dim=1)
        # Where all of the few are excluded, their scores alone must tell.
        return torch.where(bound == float("-inf"), scores.amax(dim=1), bound).to(queries.dtype)

    def _buffers(self, num_rows: int, num_columns: int) -> tuple[Tensor, Tensor]:
        size = num_rows * num_columns
        if len(self._narrow) < size:
            self._narrow, self._wide = self._narrow.new_empty(size), self._wide.new_empty(size)
        shape = (num_rows, num_columns)
        return self._narrow[:size].view(shape), self._wide[:size].view(shape)


def make_products(
    queries: Tensor, candidates: Tensor, offsets: Tensor | None, dtype: torch.dtype | None
) -> Products:
    """Make products in the given dtype; None: in that of the vectors."""
    if dtype is None or dtype == queries.dtype:
        return PlainProducts(queries, candidates, offsets)
    return RoundedProducts(queries, candidates, offsets, dtype)


def check_product_dtype(dtype: torch.dtype | None, queries: Tensor, *, shared: bool) -> None:
    """Check that products can be had in a dtype.

    Args:
        dtype: None: that of the queries.
        queries: Of any shape.
        shared: Whether all queries have the same candidates.

    Raises:
        ArgumentError: They cannot.
    """
    if dtype is None or dtype == queries.dtype:
        return
    if dtype != torch.bfloat16:
        raise ArgumentError(f"`product_dtype` must be torch.bfloat16 or None, got {dtype}.")
    if queries.dtype != torch.float32:
        raise ArgumentError(f"`product_dtype` must be None for {queries.dtype}, got {dtype}.")
    if not shared:
        raise ArgumentError(
            f"`product_dtype` must be None for candidates of each query's own, got {dtype}."
        )
