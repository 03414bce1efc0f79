"""Passes over the blocks of a matrix of logits.

Dimensions: B queries, K candidates, D embedding width; b and k of a block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.foundations import has_fast_linear, map_in_torch_threads
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


@dataclass(frozen=True)
class Gradients:
    """Gradients of the weighted sums; None where none is needed.

    Attributes:
        of_queries: [B, D], each row without its weight.
        of_candidates: [D, K]: a matrix product adds to it faster than to its transpose.
        of_offsets: [K].
    """

    of_queries: Tensor | None
    of_candidates: Tensor | None
    of_offsets: Tensor | None

    @classmethod
    def zeros(
        cls, queries: Tensor, candidates: Tensor, offsets: Tensor | None, needed: tuple[bool, ...]
    ) -> "Gradients":
        """Start at 0, as the three arguments need one."""
        return cls(
            torch.zeros_like(queries, memory_format=torch.contiguous_format) if needed[0] else None,
            candidates.new_zeros(candidates.shape[::-1]) if needed[1] else None,
            torch.zeros_like(offsets) if needed[2] and offsets is not None else None,
        )

    def add(
        self,
        products: Products,
        slopes: Tensor,
        block: tuple[slice, slice],
        share: Tensor,
        weights: Tensor,
    ) -> None:
        """Add a block's slopes [b, k]; share [b] for the queries, weights [b] for the rest."""
        rows, columns = block
        prepared = products.prepare(slopes)
        if self.of_queries is not None:
            part = products.of_queries(prepared, columns)
            self.of_queries[rows].addcmul_(part, share[:, None])
        if self.of_candidates is not None:
            self.of_candidates[:, columns] += products.of_candidates(prepared, rows, weights)
        if self.of_offsets is not None:
            self.of_offsets[columns].addmv_(slopes.T, weights)

    def beside(self) -> "Gradients":
        """Give those of another thread, which adds for other queries: only these are shared."""
        of_candidates, of_offsets = self.of_candidates, self.of_offsets
        return Gradients(
            self.of_queries,
            None if of_candidates is None else torch.zeros_like(of_candidates),
            None if of_offsets is None else torch.zeros_like(of_offsets),
        )

    def take_over(self, other: "Gradients") -> None:
        """Add what another thread has added up."""
        for mine, theirs in zip(self.parts()[1:], other.parts()[1:], strict=True):
            if mine is not None and theirs is not None:
                mine.add_(theirs)

    def of_first(self, num_candidates: int) -> "Gradients":
        """Leave the others out: as views."""
        of_candidates, of_offsets = self.of_candidates, self.of_offsets
        return Gradients(
            self.of_queries,
            None if of_candidates is None else of_candidates[:, :num_candidates],
            None if of_offsets is None else of_offsets[:num_candidates],
        )

    def parts(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Give the three."""
        return self.of_queries, self.of_candidates, self.of_offsets

    def scaled(self, weights: Tensor, factor: Tensor | None) -> tuple[Tensor | None, ...]:
        """Give [B, D] times the weights [B], and [K, D] and [K] times the factor, if any."""
        of_queries, of_candidates, of_offsets = self.parts()
        if of_queries is not None:
            of_queries = of_queries * weights[:, None]
        if of_candidates is not None and factor is not None:
            scaled = of_candidates.new_empty(of_candidates.shape[::-1])
            of_candidates = torch.mul(of_candidates.T, factor, out=scaled)
        elif of_candidates is not None:
            of_candidates = of_candidates.T.contiguous()
        if of_offsets is not None and factor is not None:
            of_offsets = of_offsets * factor
        return of_queries, of_candidates, of_offsets


def add_in_threads(
    run: Callable[[slice, Gradients], None], gradients: Gradients, parts: list[slice]
) -> Gradients:
    """Run a pass over each part of the queries in a thread of its own.

    Args:
        run: Given a part and the gradients to add to. No gradient is recorded.
        gradients: At 0.
        parts: Of the queries, as `Blocks.split` gives them.

    Returns:
        The same gradients, with all that was added.
    """
    jobs = [(part, gradients.beside() if place else gradients) for place, part in enumerate(parts)]
    map_in_torch_threads(lambda job: run(*job), jobs)
    for _, own in jobs[1:]:
        gradients.take_over(own)
    return gradients


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
        if plan.blocks is None and offsets is not None and has_fast_linear(queries):
            candidates, offsets = _fill_up(candidates, offsets)
        self._queries, self._candidates, self._offsets = queries, candidates, offsets
        self._shape = len(queries), len(candidates)
        self._kernel, self._weigh, self._removed = plan.kernel, plan.weigh, plan.removed
        self._blocks = plan.blocks or choose_blocks(queries.device, len(candidates))
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

        add_in_threads(run_alone, gradients, self._blocks.split(*self._shape))
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
    more = candidates.new_zeros(missing, candidates.shape[1])
    none = offsets.new_full((missing,), float("-inf"))
    return torch.cat([candidates, more]), torch.cat([offsets, none])
