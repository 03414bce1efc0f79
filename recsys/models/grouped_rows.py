"""Entries brought together by the row that they name, so that each row is met once.

Dimensions: L entries, R distinct rows, D embedding width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

_BITS_OF_A_WORD = 64


@dataclass(frozen=True)
class GroupedRows:
    """L entries by row: one sort gives the distinct rows, their places and sums over each.

    Attributes:
        rows: [R], int64, the distinct rows, rising.
        order: [L], int64, the entries of each row one behind the other, as they came.
        starts: [R], int64, where in `order` those of each row begin.
    """

    rows: Tensor
    order: Tensor
    starts: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Self:
        """Group the entries of [L] rows, int64, not negative."""
        in_order, order = _sort(rows)
        distinct, counts = torch.unique_consecutive(in_order, return_counts=True)
        return cls(distinct, order, counts.cumsum(dim=0) - counts)

    def to(self, device: torch.device) -> Self:
        """Bring it to a device."""
        return type(self)(self.rows.to(device), self.order.to(device), self.starts.to(device))

    def places(self) -> Tensor:
        """Tell where in `rows` the row of each entry stands: [L], int64."""
        in_order = bags_of(self.order, self.starts)
        return torch.empty_like(in_order).scatter_(0, self.order, in_order)

    def sum(self, values: Tensor) -> Tensor:
        """Add up the values [L, D] of the entries of each row: [R, D]."""
        return functional.embedding_bag(self.order, values, self.starts, mode="sum")

    def weighted_sum(self, values: Tensor, taken: Tensor, weights: Tensor) -> Tensor:
        """Add up ``weight * values[taken]`` over the entries of each row.

        Args:
            values: [B, D].
            taken: [L], int64, in [0, B), which of the values each entry takes.
            weights: [L].

        Returns:
            [R, D]; nothing of size L x D exists on the way.
        """
        return self.weighted(taken, weights).sum(values)

    def weighted(self, taken: Tensor, weights: Tensor) -> "WeightedEntries":
        """Bring what each entry takes, and its weight, [L] both, into the order of the rows."""
        order = self.order
        return WeightedEntries(
            self.starts, taken.index_select(0, order), weights.index_select(0, order)
        )

    def spread(self, vectors: Tensor) -> Tensor:
        """Give each entry the vector of its row: [R, D] to [L, D], with the gradient."""
        apply: Callable[..., Tensor] = _Spread.apply
        return apply(vectors, self)


@dataclass(frozen=True)
class WeightedEntries:
    """Entries by row, of which each takes a vector with a weight.

    Attributes:
        starts: [R], int64, where those of each row begin.
        taken: [L], int64, the vector of each.
        weights: [L], its weight.
    """

    starts: Tensor
    taken: Tensor
    weights: Tensor

    def sum(self, values: Tensor) -> Tensor:
        """Add up ``weight * values[taken]``, of [B, D], over the entries of each row: [R, D]."""
        return functional.embedding_bag(
            self.taken, values, self.starts, mode="sum", per_sample_weights=self.weights
        )


def look_up(table: Tensor, rows: Tensor) -> Tensor:
    """Give rows of a table whose gradient is sparse and holds each of them once.

    torch's own sparse gradient has an entry for each row that was looked up, repeats too, which
    the optimiser must then sort and add up, one at a time.

    Args:
        table: [N, D].
        rows: int64, any shape, in [0, N).

    Returns:
        The shape of `rows` and [D].
    """
    apply: Callable[..., Tensor] = _LookUp.apply
    return apply(table, rows)


def bags_of(entries: Tensor, starts: Tensor) -> Tensor:
    """Tell the bag of each of [L] entries, of the [B] bags that begin at `starts`: [L], int64."""
    end = torch.tensor([len(entries)], device=starts.device)
    return torch.repeat_interleave(torch.diff(starts, append=end))


def sparse_rows(rows: Tensor, values: Tensor, shape: torch.Size) -> Tensor:
    """Make a sparse gradient of [R] rows, distinct and rising, and their values [R, D]."""
    return torch.sparse_coo_tensor(
        rows[None],
        values,
        shape,
        is_coalesced=True,
        check_invariants=False,  # they hold by construction
    )


def _sort(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Sort [L] rows, equal ones as they came, and give the order that does it, likewise.

    On a CPU row and position are packed into one word, and the words are sorted: NumPy does that in
    a half to a tenth of the time that torch's stable sort takes.
    """
    bits = len(rows).bit_length()
    if rows.device.type != "cpu" or _bits_of_largest(rows) + bits > _BITS_OF_A_WORD:
        return rows.sort(stable=True)
    short = _bits_of_largest(rows) + bits <= _BITS_OF_A_WORD // 2
    dtype = np.dtype(np.uint32 if short else np.uint64)
    words: NDArray[Any] = rows.numpy().astype(dtype)
    words <<= dtype.type(bits)
    words |= np.arange(len(rows), dtype=dtype)
    words.sort()
    order = words & dtype.type(2**bits - 1)
    words >>= dtype.type(bits)
    return torch.from_numpy(words.astype(np.int64)), torch.from_numpy(order.astype(np.int64))


def _bits_of_largest(rows: Tensor) -> int:
    return int(rows.max()).bit_length() if len(rows) else 0


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, groups: GroupedRows) -> Tensor:
        ctx.groups = groups
        return vectors.index_select(0, groups.places())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.groups.sum(gradient.contiguous()), None


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        return functional.embedding(rows, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        rows, values = rows.flatten(), gradient.reshape(-1, ctx.shape[1])
        if rows.device.type == "cpu" and bool((rows[1:] > rows[:-1]).all()):
            # As of a whole catalogue. Others may hold the same gradient: it must not change there.
            return sparse_rows(rows, values.clone(), ctx.shape), None
        groups = GroupedRows.of(rows)
        return sparse_rows(groups.rows, groups.sum(values.contiguous()), ctx.shape), None
