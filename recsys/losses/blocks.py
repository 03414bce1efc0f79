"""A matrix of logits, block by block, so that it is never held whole.

Dimensions: B queries, K candidates, D embedding width.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from recsys.losses.removal import Removal

# Up to here (64 MB in float32) what the forward pass computed is kept, which spares the backward
# pass a matrix product; above, it is computed again.
MOST_KEPT = 2**24


@dataclass(frozen=True)
class Blocks:
    """The size of a block.

    Attributes:
        num_rows: Queries in a block, at least 1.
        num_columns: Candidates in a block, at least 1.
    """

    num_rows: int
    num_columns: int

    def over(self, batch: int, num_candidates: int) -> Iterator[tuple[slice, slice]]:
        """Go through [B, K] row by row of blocks; none where B or K is 0."""
        for row in range(0, batch, self.num_rows):
            rows = slice(row, min(row + self.num_rows, batch))
            for column in range(0, num_candidates, self.num_columns):
                yield rows, slice(column, min(column + self.num_columns, num_candidates))


# The exponentials of such a block stay in the processor's cache.
CACHED = Blocks(num_rows=256, num_columns=4096)


def block_logits(
    queries: Tensor,
    candidates: Tensor,
    offsets: Tensor | None,
    removal: Removal | None,
    block: tuple[slice, slice],
) -> Tensor:
    """Compute ``<query, candidate> + offset`` of one block: [b, k], -inf for what leaves.

    Args:
        queries: [B, D], float32 or wider; already divided by the temperature.
        candidates: [K, D], same dtype.
        offsets: [K], same dtype. None: nothing is added.
        removal: What leaves. None: nothing does.
        block: Its rows and columns.
    """
    rows, columns = block
    if offsets is None:
        logits = queries[rows] @ candidates[columns].T
    else:
        logits = offsets[columns].addmm(queries[rows], candidates[columns].T)
    if removal is not None and not removal.is_empty:
        # -inf, not a large negative number: a hit must get a gradient of exactly zero.
        logits.masked_fill_(removal.find(rows, columns), float("-inf"))
    return logits


def count_left(removal: Removal, batch: int, num_candidates: int, blocks: Blocks) -> Tensor:
    """Count the candidates that stay in each query's row: [B], int64."""
    counts = removal.candidate_rows.new_zeros(batch)
    for rows, columns in blocks.over(batch, num_candidates):
        counts[rows] += removal.find(rows, columns).logical_not_().sum(dim=1)
    return counts
