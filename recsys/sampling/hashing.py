"""Hash functions from candidates to buckets, for estimates that hold no row a candidate.

Dimensions: M hash functions (tables), H buckets each, C candidates in the catalogue.
"""

from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import (
    ArgumentError,
    check_count,
    check_integers,
    check_positive,
    check_shape,
    make_generator,
)
from recsys.sampling.draw import check_rows

_PRIME = 2**31 - 1  # so that products of two residues stay below 2^62


class Hashing(Protocol):
    """M functions from rows to buckets; they never change."""

    @property
    def num_tables(self) -> int:
        """Give M."""
        ...

    @property
    def num_buckets(self) -> int:
        """Give H."""
        ...

    def buckets(self, rows: Tensor) -> Tensor:
        """Give each row's bucket in every table: [M, *rows.shape], int64, in [0, H)."""
        ...

    def identity(self) -> Tensor:
        """Give what tells the functions from others of the same M and H, for a checkpoint."""
        ...


class SeededHashing:
    """M random polynomials of degree 3 modulo 2^31 - 1, taken modulo H, of one seed.

    Any four different rows fall independently and evenly into the buckets of a table (up to a
    share of ``H / 2^31``), and the M tables are independent. So two rows share a bucket with chance
    1 / H, and the number of pairs that do varies no more than under wholly random buckets; with a
    linear function, some seeds would fold consecutive rows into a small part of the buckets.
    Memory does not depend on C.

    Args:
        num_tables: M, at least 1.
        num_buckets: H, in [1, 2^31 - 1).
        seed: Of the coefficients.

    Raises:
        ArgumentError: One of the two numbers is out of range.

    Source:
        "New hash functions and their use in authentication and set equality", JCSS 1981.
    """

    def __init__(self, num_tables: int, num_buckets: int, seed: int) -> None:
        check_count("num_tables", num_tables)
        if not 1 <= num_buckets < _PRIME:
            raise ArgumentError(f"`num_buckets` must be in [1, {_PRIME}), got {num_buckets}.")
        check_count("num_buckets", num_buckets)
        self.num_tables, self.num_buckets = num_tables, num_buckets
        generator = make_generator(seed, "hashing")
        self._coefficients = torch.randint(_PRIME, (4, num_tables), generator=generator)

    def buckets(self, rows: Tensor) -> Tensor:
        """Give each row's bucket in every table: [M, *rows.shape], int64.

        Raises:
            ArgumentError: A row is not in [0, 2^31 - 1).
        """
        check_rows("rows", rows, _PRIME)
        first, *others = self._coefficients.view(4, -1, *[1] * rows.ndim)  # each [M, 1, ...]
        values: Tensor = first.expand(self.num_tables, *rows.shape)
        for coefficient in others:
            values = (values * rows + coefficient) % _PRIME  # [M, *rows.shape]
        return values % self.num_buckets

    def identity(self) -> Tensor:
        """Give the coefficients: [4, M], int64."""
        return self._coefficients


class TableHashing:
    """M functions that are written out, a bucket for every candidate.

    ``TableHashing(torch.arange(C)[None], num_buckets=C)`` gives each candidate a bucket of its own.

    Args:
        tables: [M, C], integers in [0, H).
        num_buckets: H.

    Raises:
        ArgumentError: A bucket is out of range.
        ShapeError: `tables` is not [M, C].
    """

    def __init__(self, tables: NDArray[Any] | Tensor, *, num_buckets: int) -> None:
        check_shape("tables", tables, None, None)
        check_integers("tables", tables)
        self._tables = torch.as_tensor(tables).to(torch.int64, copy=True)
        check_rows("tables", self._tables, num_buckets)
        check_positive("num_tables", len(self._tables))
        self.num_tables, self.num_buckets = len(self._tables), num_buckets

    def buckets(self, rows: Tensor) -> Tensor:
        """Give each row's bucket in every table: [M, *rows.shape], int64.

        Raises:
            ArgumentError: A row is not in [0, C).
        """
        check_rows("rows", rows, self._tables.shape[1])
        return self._tables[:, rows]

    def identity(self) -> Tensor:
        """Give the tables: [M, C], int64."""
        return self._tables


def places_in_tables(hashing: Hashing, rows: Tensor) -> Tensor:
    """Give each row's place in every one of M tables of H that lie end to end.

    Args:
        hashing: M functions from rows to buckets.
        rows: Any shape, int64.

    Returns:
        [M, *rows.shape], int64, in [0, M H).
    """
    starts = hashing.num_buckets * torch.arange(hashing.num_tables)
    return starts.view(-1, *[1] * rows.ndim) + hashing.buckets(rows)
