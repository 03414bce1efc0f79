"""Factors of items by alternating least squares, for the ridge part of a model.

Dimensions: U users, N items, R rows of one side, K factors, L entries of a row, B rows in a block.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import Ragged, check_positive, check_shape
from recsys.models.principal_axes import principal_axes

_NUMBERS_AT_ONCE = 2**20  # in the vectors of a block: few enough to stay in the cache
_MOST_NUMBERS = 2**26  # in the vectors of a row that is longer: 256 MB
_STEPS = 3
_INIT_STD = 0.1


class ItemFactors:
    """Factors u of users and v of items on their way to explain who had what.

    They make small, by turns of all users and all items,

        sum over pairs (<u, v> - 1)^2  +  unobserved · sum over all U x N <u, v>^2
        + regularization · sum over rows of frequency · |row|^2,

    where a pair is a user and an item with at least one event, U counts users with one, and the
    frequency of a user with n items is n + unobserved · N, that of an item with n users
    n + unobserved · U. A row without a pair is zeros.

    Args:
        users: [M], user of each event; any numbers, of which only equality counts.
        items: [M], in [0, N).
        num_items: N.
        dim: K.
        generator: Draws the first factors, on the CPU.

    Source:
        "Revisiting the performance of iALS on item recommendation benchmarks", RecSys 2022.
        Differs: each system is solved by 3 steps of conjugate gradients from where it stood, in
        the principal axes of the other side, where all but a row's own entries is diagonal and
        preconditions them.
    """

    def __init__(
        self,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        *,
        num_items: int,
        dim: int,
        generator: torch.Generator,
    ) -> None:
        check_shape("items", items, len(users))
        check_positive("dim", dim)
        _, owners = np.unique(users, return_inverse=True)
        num_users = int(owners.max(initial=-1)) + 1
        pairs = np.unique(owners.astype(np.int64) * num_items + items)
        owners, chosen = pairs // num_items, pairs % num_items
        most = max(_NUMBERS_AT_ONCE // dim, 1)
        self._by_user = _Side.of(owners, chosen, num_users, num_items, most=most)
        self._by_item = _Side.of(chosen, owners, num_items, num_users, most=most)
        std = _INIT_STD / dim**0.5
        self._of_users: Tensor = torch.randn(num_users, dim, generator=generator) * std
        self._of_items: Tensor = torch.randn(num_items, dim, generator=generator) * std
        self._of_items[self._by_item.lengths == 0] = 0

    def fit(
        self,
        *,
        regularization: float,
        unobserved: float,
        iterations: int,
        on_turn: Callable[[], None] = lambda: None,
    ) -> Tensor:
        """Fit from the first factors, whatever was fitted before.

        Args:
            regularization: Above 0.
            unobserved: Above 0.
            iterations: Turns of users and items.
            on_turn: Is called after each.

        Returns:
            [N, K], float32, on the CPU: the factors of the items.
        """
        check_positive("regularization", regularization)
        check_positive("unobserved", unobserved)
        check_positive("iterations", iterations)
        of_users, of_items = self._of_users, self._of_items
        for _ in range(iterations):
            axes = principal_axes(of_items)
            of_users, of_items = of_users @ axes, of_items @ axes
            self._by_user.solve(of_users, of_items, regularization, unobserved)
            axes = principal_axes(of_users)
            of_users, of_items = of_users @ axes, of_items @ axes
            self._by_item.solve(of_items, of_users, regularization, unobserved)
            on_turn()
        return of_items


@dataclass(frozen=True)
class _Side:
    """Users with their items, or items with their users.

    Attributes:
        lengths: [R], entries of each row.
        blocks: Rows [B] of about one length, and their entries [B, L], filled up with the number
            of the other side's rows.
    """

    lengths: Tensor
    blocks: list[tuple[Tensor, Tensor]]

    @classmethod
    def of(
        cls,
        rows: NDArray[np.int64],
        others: NDArray[np.int64],
        num_rows: int,
        num_others: int,
        *,
        most: int,
    ) -> "_Side":
        order = np.argsort(rows, kind="stable")
        lengths = np.bincount(rows, minlength=num_rows)
        entries = Ragged(np.append(0, lengths.cumsum()), others[order])
        blocks = [
            (torch.from_numpy(some), torch.from_numpy(_padded(entries, some, num_others)))
            for some in _similar(lengths, most)
        ]
        return cls(torch.from_numpy(lengths), blocks)

    def solve(self, here: Tensor, there: Tensor, regularization: float, unobserved: float) -> None:
        """Bring the factors `here` [R, K] nearer to their optimum for those of the other side.

        Both stand in the principal axes of `there`.
        """
        base = unobserved * (there.square().sum(dim=0) + regularization * len(there))  # [K]
        there = torch.cat([there, torch.zeros_like(there[:1])])  # what rows are filled up with
        for rows, entries in self.blocks:
            weights = base + regularization * self.lengths[rows, None]  # [B, K]
            vectors = _Vectors(there, entries)
            here[rows] = _descend(here.index_select(0, rows), vectors, weights)


class _Vectors:
    """The vectors Z of the entries of rows: [B, L, K], of a very long row looked up by pieces.

    Args:
        table: [R, K].
        entries: [B, L], rows of it.
    """

    def __init__(self, table: Tensor, entries: Tensor) -> None:
        self._table = table
        self._pieces = entries.split(max(_MOST_NUMBERS // table.shape[1], 1), dim=1)
        self._kept = self._look_up(entries) if len(self._pieces) == 1 else None

    def __iter__(self) -> Iterator[Tensor]:
        if self._kept is not None:
            yield self._kept
            return
        for piece in self._pieces:
            yield self._look_up(piece)

    def _look_up(self, entries: Tensor) -> Tensor:
        return self._table.index_select(0, entries.reshape(-1)).view(*entries.shape, -1)


def _descend(factors: Tensor, vectors: _Vectors, weights: Tensor) -> Tensor:
    """Take steps of conjugate gradients: [B, K] for ``(diag(weights) + Zᵀ Z) x = sum(Z)``."""

    def times(x: Tensor) -> Tensor:
        product = weights * x
        for piece in vectors:
            seen = torch.bmm(x[:, None], piece.mT)  # [B, 1, L]
            product = product + torch.bmm(seen, piece)[:, 0]
        return product

    rest = torch.stack([piece.sum(dim=1) for piece in vectors]).sum(dim=0) - times(factors)
    direction = rest / weights
    size = (rest * direction).sum(dim=1, keepdim=True)
    tiny = torch.finfo(size.dtype).tiny  # of a system that is solved: 0 / tiny, no 0 / 0
    for _ in range(_STEPS):
        image = times(direction)
        step = size / (direction * image).sum(dim=1, keepdim=True).clamp(min=tiny)
        factors, rest = factors + step * direction, rest - step * image
        eased = rest / weights
        last, size = size, (rest * eased).sum(dim=1, keepdim=True)
        direction = eased + size / last.clamp(min=tiny) * direction
    return factors


def _similar(lengths: NDArray[np.int64], most: int) -> Iterator[NDArray[np.int64]]:
    """Give blocks of rows of about so many entries, the longest first, none of them empty."""
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    start = 0
    while start < len(order):
        stop = start + max(most // int(lengths[order[start]]), 1)
        yield order[start:stop]
        start = stop


def _padded(entries: Ragged, rows: NDArray[np.int64], filler: int) -> NDArray[np.int64]:
    """Lay the entries of rows out as [B, L]."""
    lengths = entries.lengths[rows]
    places = np.arange(lengths.max())
    there = places < lengths[:, None]
    padded = np.full(there.shape, filler, dtype=np.int64)
    padded[there] = entries.rows[(entries.offsets[rows, None] + places)[there]]
    return padded
