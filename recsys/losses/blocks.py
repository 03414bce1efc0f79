"""A matrix of logits, block by block, so that it is never held whole.

Dimensions: B queries, K candidates.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from recsys.foundations import num_threads


@dataclass(frozen=True)
class Blocks:
    """The size of a block.

    Attributes:
        num_rows: Queries in a block, at least 1.
        num_columns: Candidates in a block, at least 1.
    """

    num_rows: int
    num_columns: int

    def over(self, queries: slice, num_candidates: int) -> Iterator[tuple[slice, slice]]:
        """Go through the rows of some queries, row by row of blocks; none where K is 0."""
        for row in range(queries.start, queries.stop, self.num_rows):
            rows = slice(row, min(row + self.num_rows, queries.stop))
            for column in range(0, num_candidates, self.num_columns):
                yield rows, slice(column, min(column + self.num_columns, num_candidates))

    def split(self, batch: int, num_candidates: int, threads: int) -> list[slice]:
        """Cut the queries into parts, one for each thread; into one where rows are long.

        Each thread has gradients of all candidates, and a block of its own.
        """
        whole_rows = num_candidates <= min(self.num_columns, _MOST_COLUMNS)
        return cut(batch, max(min(threads, batch), 1) if whole_rows else 1)


def cut(length: int, parts: int) -> list[slice]:
    """Cut a length into so many parts, as equal as can be."""
    bounds = [length * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def threads_worth(device: torch.device, num_logits: int) -> int:
    """Give how many threads so many logits are worth; 1 but on a CPU: a device works by itself."""
    if device.type != "cpu":
        return 1
    return max(min(num_threads(), num_logits // _WORTH_A_THREAD), 1)


_WORTH_A_THREAD = 2**17  # logits, half a millisecond
# Logits of a block of whole rows that stays in a core's caches; a matrix product needs some rows.
_CACHED, _FEWEST_ROWS, _MOST_ROWS, _MOST_COLUMNS = 2**20, 128, 1024, 2**15
_SPLIT = Blocks(num_rows=256, num_columns=4096)  # where rows are longer than that
_ON_DEVICE = Blocks(num_rows=2048, num_columns=4096)  # a device likes few large kernels


def choose_blocks(device: torch.device, num_candidates: int) -> Blocks:
    """Choose blocks that the device works fast on: at most 16 MB of float32 logits, or 32 on a GPU.

    On a CPU they hold whole rows unless these are long: what is left of a softmax is then known
    before the next block, so that one pass over the blocks gives the sums and their gradients.
    """
    if device.type != "cpu":
        return _ON_DEVICE
    if num_candidates > _MOST_COLUMNS:
        return _SPLIT
    columns = max(num_candidates, 1)
    return Blocks(min(max(_CACHED // columns, _FEWEST_ROWS), _MOST_ROWS), columns)
