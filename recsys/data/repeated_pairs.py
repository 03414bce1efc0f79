"""A user's further rows of one item: counted, and left out or summed up."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import Block, CodedLog
from recsys.data.stable_order import run_starts, stable_order


class PairFilter:
    """Makes pairs of user and item unique, block by block.

    Args:
        rule: "keep_first" and "keep_last" (by time, then input order), "keep_all" or
            "sum_weights" (the first row with the sum of the weights, 1 each where there are none).
        num_items: Codes of items.
    """

    def __init__(self, rule: str, num_items: int) -> None:
        self._rule, self._num_items = rule, num_items
        self._adds_weights = False
        self._repeated_rows = self._exact_repeats = 0
        self._parts_are_given = False

    def begin(self, columns: Sequence[str]) -> list[str]:
        """Take the names of a log's columns, and give those of the filtered log."""
        self._adds_weights = self._rule == "sum_weights" and "weight" not in columns
        self._parts_are_given = "part" in columns
        return [*columns, *(["weight"] if self._adds_weights else [])]

    def apply(self, block: Block) -> Block:
        """Filter a block that holds all rows of its users."""
        if self._adds_weights:
            block = replace(
                block, columns=block.columns | {"weight": np.ones(len(block), np.float32)}
            )
        keys = block.pairs(self._num_items)
        if self._parts_are_given:  # pairs are to be unique inside each part
            keys = keys * 8 + block.columns["part"]
        order = stable_order(keys)
        starts = run_starts(keys.take(order, mode="clip"))
        repeated = len(block) - int(np.count_nonzero(starts))
        if not repeated:
            return block
        self._repeated_rows += repeated
        if "timestamp" in block.columns:
            times = block.columns["timestamp"][order]
            self._exact_repeats += int(np.count_nonzero(~starts & ~run_starts(times)))
        return self._choose(block, order, starts)

    def _choose(self, block: Block, order: NDArray[np.int64], starts: NDArray[np.bool_]) -> Block:
        if self._rule == "keep_all":
            return block
        firsts = order[starts]
        if self._rule == "sum_weights":
            weights, places = block.columns["weight"], np.flatnonzero(starts)
            weights[firsts] = np.add.reduceat(weights[order], places, dtype=np.float64)
        kept = np.zeros(len(block), bool)
        kept[order[np.append(starts[1:], True)] if self._rule == "keep_last" else firsts] = True
        return block.keep(kept)

    def finish(self, log: CodedLog) -> CodedLog:
        """Give the log of all filtered blocks, with what is known of it now."""
        if self._adds_weights and not self._repeated_rows:  # nothing was summed up
            log = log.without_column("weight")
        unique = self._rule != "keep_all" or not self._repeated_rows
        return replace(log, distinct_pairs=unique and not self._parts_are_given)

    def counts(self) -> dict[str, int]:
        """Give the rows that repeat a pair, and how many of these have the same time too."""
        return {"repeated_rows": self._repeated_rows, "exact_repeats": self._exact_repeats}
