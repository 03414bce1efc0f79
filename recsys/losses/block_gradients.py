"""Gradients of sums over logits, added up block by block, in several threads.

Dimensions: B queries, K candidates, D embedding width; b and k of a block.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import map_in_torch_threads, operator_threads
from recsys.losses.blocks import Blocks, cut, threads_worth
from recsys.losses.products import Products

_WORTH_A_THREAD = 2**17  # sums


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

    def take_over(self, others: "list[Gradients]") -> None:
        """Add what other threads have added up, always in the same order."""
        for other in others:
            if self.of_offsets is not None and other.of_offsets is not None:
                self.of_offsets.add_(other.of_offsets)
        if self.of_candidates is None:
            return
        mine, theirs = self.of_candidates, [other.of_candidates for other in others]
        threads = min(len(others) + 1, max(mine.numel() // _WORTH_A_THREAD, 1))

        def add(some: slice) -> None:
            for sums in theirs:
                if sums is not None:
                    mine[some] += sums[some]

        map_in_torch_threads(add, cut(len(mine), threads))

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
    run: Callable[[slice, Gradients], None],
    gradients: Gradients,
    blocks: Blocks,
    shape: tuple[int, int],
    device: torch.device,
) -> None:
    """Run a pass over parts of the queries, each in a thread of its own where that is worth it.

    Where all is one part, and long, torch cuts each operator.

    Args:
        run: Given a part and the gradients to add to. No gradient is recorded.
        gradients: At 0; what is added stands there.
        blocks: That the pass goes through.
        shape: B and K.
        device: Of the logits.
    """
    threads = threads_worth(device, shape[0] * shape[1])
    parts = blocks.split(*shape, threads)
    jobs = [(part, gradients.beside() if place else gradients) for place, part in enumerate(parts)]
    alone = len(jobs) == 1 and threads > 1
    with operator_threads(threads) if alone else nullcontext():
        map_in_torch_threads(lambda job: run(*job), jobs)
    gradients.take_over([own for _, own in jobs[1:]])
