"""Passes over the blocks of a matrix of logits.

Dimensions: B queries, K candidates, D embedding width; b and k of a block.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from recsys.foundations import has_fast_linear
from recsys.losses.block_gradients import Gradients, add_in_threads
from recsys.losses.blocks import Blocks, choose_blocks
from recsys.losses.products import Products, make_products
from recsys.losses.removed_places import RemovedPlaces

_AT_ONCE = 16  # float32 values of 512 bits
# The sums of some queries [b] -> the gradient that they will get, up to one factor for all queries.
Weigh = Callable[[slice, Tensor], Tensor]


class Kernel(Protocol):
    """What is summed, and how the sums over blocks of candidates make one."""

    def start(self, queries: Tensor) -> Tensor:
        """Give the sum over no candidate, for each query: [B]."""
        ...

    def reduce(self, logits: Tensor, shift: Tensor | None) -> tuple[Tensor, Tensor]:
        """Sum a block of logits, given less the shift [b], to [b]; and give its slopes by logit.

        The slopes [b, k] may take the memory of the logits.
        """
        ...

    def combine(self, total: Tensor, part: Tensor) -> Tensor:
        """Give the sum over two blocks of candidates from the sum over each: [b]."""
        ...

    def share(self, part: Tensor, total: Tensor) -> Tensor:
        """Give the slope of the sum over all blocks by that over one: [b]."""
        ...


@dataclass(frozen=True)
class Plan:
    """What to sum, over what, and how.

    Attributes:
        kernel: What is summed.
        removed: What leaves the sum, with a gradient of exactly 0. None: nothing does.
        blocks: The size of a block; the sums do not depend on it. None: what is fast.
        product_dtype: What the factors of the matrix products are rounded to. None: nothing.
        weigh: The gradient to expect; the gradients do not depend on it. None: 1 for all queries.
    """

    kernel: Kernel
    removed: RemovedPlaces | None
    blocks: Blocks | None = None
    product_dtype: torch.dtype | None = None
    weigh: Weigh | None = None


class BlockPasses:
    """The passes over one matrix of logits.

    Args:
        queries: [B, D], float32 or wider.
        candidates: [K, D], same dtype.
        offsets: [K], same dtype, or None.
        plan: What to sum, and how.
    """

    def __init__(
        self, queries: Tensor, candidates: Tensor, offsets: Tensor | None, plan: Plan
    ) -> None:
        self._num_candidates = len(candidates)
        blocks = plan.blocks or choose_blocks(queries.device, len(candidates))
        whole_rows = plan.blocks is None and blocks.num_columns >= len(candidates)
        if whole_rows and offsets is not None and has_fast_linear(queries):
            candidates, offsets = _fill_up(candidates, offsets)
            blocks = replace(blocks, num_columns=max(blocks.num_columns, len(candidates)))
        self._queries, self._candidates, self._offsets = queries, candidates, offsets
        self._shape = len(queries), len(candidates)
        self._kernel, self._weigh, self._removed = plan.kernel, plan.weigh, plan.removed
        self._blocks = blocks
        self._products = make_products(queries, candidates, offsets, plan.product_dtype)

    @property
    def one_suffices(self) -> bool:
        """Tell whether a block holds whole rows, on a device that need not be waited for."""
        batch, num_candidates = self._shape
        whole_rows = self._blocks.num_columns >= num_candidates > 0
        return self._queries.device.type == "cpu" and batch > 0 and whole_rows

    def sum(self) -> Tensor:
        """Compute the sums: [B]."""
        result = self._kernel.start(self._queries)

        def run(some: slice, products: Products, _: Gradients) -> None:
            for rows, columns in self._blocks.over(some, self._shape[1]):
                part = self._reduce(products, rows, columns)[0]
                result[rows] = self._kernel.combine(result[rows], part)

        self._in_threads(run, self._zeros((False,) * 3))
        return result

    def differentiate(self, result: Tensor, weights: Tensor, needed: tuple[bool, ...]) -> Gradients:
        """Compute the gradients of the sums [B] times the weights [B]."""

        def run(some: slice, products: Products, gradients: Gradients) -> None:
            for rows, columns in self._blocks.over(some, self._shape[1]):
                part, slopes = self._reduce(products, rows, columns)
                share = self._kernel.share(part, result[rows])
                gradients.add(products, slopes, (rows, columns), share, share * weights[rows])
                del slopes  # before the next block is made

        return self._in_threads(run, self._zeros(needed))

    def sum_and_differentiate(self, needed: tuple[bool, ...]) -> tuple[Tensor, Tensor, Gradients]:
        """Compute the sums [B], the weights that are expected [B], and the gradients, in one."""
        result = self._kernel.start(self._queries)
        expected = torch.ones_like(result)

        def run(some: slice, products: Products, gradients: Gradients) -> None:
            for rows, columns in self._blocks.over(some, self._shape[1]):
                result[rows], slopes = self._reduce(products, rows, columns)
                if self._weigh is not None:
                    expected[rows] = self._weigh(rows, result[rows])
                whole = torch.ones_like(result[rows])
                gradients.add(products, slopes, (rows, columns), whole, expected[rows])
                del slopes  # before the next block is made

        return result, expected, self._in_threads(run, self._zeros(needed))

    def _in_threads(
        self, run: Callable[[slice, Products, Gradients], None], gradients: Gradients
    ) -> Gradients:
        if self._removed is not None:
            self._removed.prepare()

        def run_alone(some: slice, own: Gradients) -> None:
            run(some, self._products.alone(), own)

        add_in_threads(run_alone, gradients, self._blocks, self._shape, self._queries.device)
        return gradients.of_first(self._num_candidates)

    def _zeros(self, needed: tuple[bool, ...]) -> Gradients:
        return Gradients.zeros(self._queries, self._candidates, self._offsets, needed)

    def _reduce(self, products: Products, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """Give a block's sums [b] and its slopes [b, k]."""
        logits, shift = products.logits(rows, columns)
        if self._removed is not None:
            columns = slice(columns.start, min(columns.stop, self._num_candidates))
            self._removed.fill(logits[:, : columns.stop - columns.start], rows, columns)
        return self._kernel.reduce(logits, shift)


def _fill_up(candidates: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Add excluded candidates, up to a multiple of what a processor works on at once.

    Samples without repeats have another size each time; so there are few sizes, each of which
    oneDNN prepares once, and rows of logits begin where loads are fast.
    """
    missing = -len(candidates) % _AT_ONCE
    if missing == 0:
        return candidates, offsets
    more = candidates.new_zeros(missing, candidates.shape[1])
    none = offsets.new_full((missing,), float("-inf"))
    return torch.cat([candidates, more]), torch.cat([offsets, none])
