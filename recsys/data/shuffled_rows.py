"""Numbers 0 to N in a random order of which memory holds a part at a time.

Dimensions: N rows, B rows in a batch.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import check_positive, make_numpy_generator

POOL_ROWS = 2**22  # what the shuffle of a pool touches stays near the cache
_BLOCK_ROWS = 64


class ShuffledRows:
    """All rows once an epoch, in an order by seed and epoch that can be taken up anywhere.

    Where all rows fit a pool, they are permuted as a whole. Otherwise blocks of 64 consecutive rows
    are permuted and dealt out to pools of equal size, and the rows of one pool after the other are
    permuted. Memory is that of two pools, 8 bytes a row of a pool (16 where N is beyond int32), and
    an eighth of a byte for each of N.

    Rows that stand close together are alike (a log is sorted by user). Two rows of a pool are of
    one block with the chance 64 / pool_rows, which adds to the chance that they are alike anyway.

    Args:
        num_rows: N.
        pool_rows: The most rows of a pool.
        seed: Of the order.

    Raises:
        ArgumentError: `pool_rows` is not above 0.
    """

    def __init__(self, num_rows: int, *, pool_rows: int, seed: int) -> None:
        check_positive("pool_rows", pool_rows)
        self._num_rows, self._seed = num_rows, seed
        self._dtype = np.dtype(np.int32 if num_rows <= 2**31 else np.int64)  # half is faster
        self._block_rows = min(_BLOCK_ROWS, pool_rows)
        num_blocks = -(-num_rows // self._block_rows)
        self._num_pools = -(-num_blocks // (pool_rows // self._block_rows))
        if num_rows <= pool_rows:
            self._num_pools = 1
        self._pool_blocks = -(-num_blocks // self._num_pools)

    def batches(
        self, epoch: int, batch_size: int, *, first_batch: int = 0
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the rows of the batches, from `first_batch` on: [B] each, the last one shorter."""
        pieces: list[NDArray[np.integer]] = []
        missing = batch_size
        for pool in self._pools(epoch, first_batch * batch_size):
            place = 0
            while place < len(pool):
                pieces.append(pool[place : place + missing])
                place, missing = place + len(pieces[-1]), missing - len(pieces[-1])
                if missing == 0:
                    yield np.concatenate(pieces).astype(np.int64)
                    pieces, missing = [], batch_size
            pieces = [piece.copy() for piece in pieces]  # so that the pool itself can go
        if pieces:
            yield np.concatenate(pieces).astype(np.int64)

    def _pools(self, epoch: int, first_row: int) -> Iterator[NDArray[np.integer]]:
        """Yield the order pool by pool, from the place `first_row` on."""
        if self._num_pools == 1:
            rows: NDArray[np.integer] = np.arange(self._num_rows, dtype=self._dtype)
            self._generator("batches", epoch).shuffle(rows)
            yield rows[first_row:]
            return
        pool_rows = self._pool_blocks * self._block_rows
        blocks = self._blocks(epoch)
        for number in range(first_row // pool_rows, self._num_pools):
            chosen = blocks[number * self._pool_blocks :][: self._pool_blocks]
            starts = (chosen * self._block_rows).astype(self._dtype)
            rows = np.add.outer(starts, np.arange(self._block_rows, dtype=self._dtype)).reshape(-1)
            surplus = max(int(starts[-1]) + self._block_rows - self._num_rows, 0)
            rows = rows[: len(rows) - surplus]  # a shorter block is the last of all
            self._generator("batches", epoch, number).shuffle(rows)
            yield rows[max(first_row - number * pool_rows, 0) :]

    def _blocks(self, epoch: int) -> NDArray[np.int64]:
        """Give the order of the blocks; one with fewer rows comes last."""
        whole, rest = divmod(self._num_rows, self._block_rows)
        blocks = self._generator("blocks", epoch).permutation(whole)
        return np.append(blocks, whole) if rest else blocks

    def _generator(self, *stream: str | int) -> np.random.Generator:
        return make_numpy_generator(self._seed, *stream)
