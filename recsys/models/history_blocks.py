"""Histories cut into blocks of similar lengths, oldest first, what is not known left out.

Dimensions: R histories of L entries, n histories in a block of width W, T tokens in a block.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

_DENSE_TOKENS = 2048  # of a dense block: enough for matrices to be fast, little for one query
# A compact block ends where this share of its width is enough for all histories that are left, if
# a narrower block for them has at least so many places less.
_NARROWER, _FEWER = 0.6, 1024


@dataclass(frozen=True)
class HistoryBlock:
    """The known items of some histories, each history oldest first and its end filled up.

    What stands behind the end of a history is of no meaning. An encoder that looks only back can
    leave it there: no item sees it.

    Attributes:
        owners: [n], int64, in [0, R), whose history it is; -1: an empty row that fills the block.
        lengths: [n], int64, known items of each history.
        width: W, at least the longest of them.
        slots: [T], int64, where the tokens stand in the n * W places of the block; None: every
            place is a token, and T = n * W.
        items: [T], int64, rows of the items' table, history by history.
        times: [T], int64, when each was met, in µs; None: not known of any.
    """

    owners: Tensor
    lengths: Tensor
    width: int
    slots: Tensor | None
    items: Tensor
    times: Tensor | None

    def positions(self) -> Tensor:
        """Count from the oldest item, which is 0: [T]."""
        if self.slots is not None:
            return self.slots % self.width
        return torch.arange(self.width, device=self.items.device).repeat(len(self.owners))

    def ages(self) -> Tensor:
        """Count from the newest item, which is 0: [T]; below 0 behind the end of a history."""
        if self.slots is not None:
            rows = self.slots // self.width
            return self.lengths.index_select(0, rows) - 1 - self.positions()
        return self.lengths.repeat_interleave(self.width) - 1 - self.positions()

    def keep(self, tokens: Tensor) -> Self:
        """Keep the tokens given by their rising places in [0, T); they stay where they stand."""
        return replace(
            self,
            slots=tokens if self.slots is None else self.slots.index_select(0, tokens),
            items=self.items.index_select(0, tokens),
            times=None if self.times is None else self.times.index_select(0, tokens),
        )

    def first_tokens(self) -> Tensor:
        """Give the token of the oldest item of each history: [n]."""
        if self.slots is not None:
            return self.lengths.cumsum(dim=0) - self.lengths
        return torch.arange(len(self.owners), device=self.items.device) * self.width

    def spread(self, tokens: Tensor, *, filler: float = 0.0) -> Tensor:
        """Lay [T, ...] tokens out as histories: [n, W, ...], `filler` where there is no token."""
        num_slots, shape = len(self.owners) * self.width, tokens.shape[1:]
        if self.slots is not None and len(tokens) < num_slots:
            block = tokens.new_full((num_slots, *shape), filler)
            tokens = block.index_copy(0, self.slots, tokens)
        return tokens.view(len(self.owners), self.width, *shape)

    def collect(self, histories: Tensor) -> Tensor:
        """Undo `spread`: [n, W, ...] to [T, ...]."""
        flat = histories.flatten(0, 1)
        if self.slots is None or len(self.slots) == len(flat):
            return flat
        return flat.index_select(0, self.slots)


def in_order(parts: list[Tensor], places: list[Tensor]) -> Tensor:
    """Put rows that were computed in parts where they belong.

    Args:
        parts: Of [n, ...] each, N rows in all.
        places: Of [n] each, int64: all of [0, N), each once.

    Returns:
        [N, ...].
    """
    found = torch.cat(places)
    order = torch.empty_like(found)
    order[found] = torch.arange(len(found), device=found.device)
    return torch.cat(parts).index_select(0, order)


def cut_compact(histories: Tensor, known: Tensor, times: Tensor | None) -> list[HistoryBlock]:
    """Cut histories into few blocks whose tokens are the known items and nothing else.

    Histories of similar lengths come together, so that little is filled up.

    Args:
        histories: [R, L], int64, newest first.
        known: [R, L], bool; what is not known is left out.
        times: [R, L], int64, or None.

    Returns:
        Blocks that hold each history that is not empty once.
    """
    counts, order = known.sum(dim=1).sort(descending=True, stable=True)
    lengths = counts[counts > 0].cpu()
    blocks, start = [], 0
    while start < len(lengths):
        width = int(lengths[start])
        stop = int((lengths > width * _NARROWER).sum())
        if (len(lengths) - stop) * (width - int(width * _NARROWER)) < _FEWER:
            stop = len(lengths)
        blocks.append(_cut(histories, known, times, order[start:stop]))
        start = stop
    return blocks


def cut_dense(
    histories: Tensor, known: Tensor, times: Tensor | None, *, length: int
) -> list[HistoryBlock]:
    """Cut histories into blocks of fixed shapes, in which every place is a token.

    The shape that a history is computed in depends on nothing but its own length, so that its
    numbers are the same to the last bit in whatever company it comes.

    Args:
        histories: [R, L], int64, newest first.
        known: [R, L], bool; what is not known is left out.
        times: [R, L], int64, or None.
        length: At least the longest history.

    Returns:
        Blocks that hold each history that is not empty once.
    """
    counts = known.sum(dim=1)
    widths = _widths(length)
    bounds = torch.tensor(widths, device=counts.device)
    choice = torch.bucketize(counts, bounds).masked_fill(counts == 0, -1)  # [R]
    blocks = []
    for number, width in enumerate(widths):
        owners = (choice == number).nonzero().squeeze(1)
        num_rows = 1 << max(_DENSE_TOKENS // width, 1).bit_length() - 1  # a power of two
        for part in owners.split(num_rows) if len(owners) > 0 else ():
            blocks.append(_fill_up(_cut(histories, known, times, part), num_rows, width))
    return blocks


def _widths(length: int) -> list[int]:
    """List 16, 32, 48, 64, 96, 128, ... up to the first that holds `length`: multiples of 16."""
    widths = [16]
    while widths[-1] < length:
        power = 1 << widths[-1].bit_length() - 1
        widths.append(widths[-1] + max(power // 2, 16))
    widths[-1] = min(widths[-1], -(-length // 16) * 16)
    return widths


def _cut(histories: Tensor, known: Tensor, times: Tensor | None, owners: Tensor) -> HistoryBlock:
    """Make the compact block of some histories, none of them empty."""
    there = known.index_select(0, owners).flip(1)  # [n, L], oldest first
    lengths = there.sum(dim=1)
    width = int(lengths.max())
    flat = there.flatten().nonzero().squeeze(1)  # [T]
    starts = lengths.cumsum(dim=0) - lengths
    shift = torch.arange(len(owners), device=flat.device) * width - starts
    slots = torch.arange(len(flat), device=flat.device) + shift.repeat_interleave(lengths)

    def of_tokens(values: Tensor) -> Tensor:
        return values.index_select(0, owners).flip(1).flatten().index_select(0, flat)

    met = None if times is None else of_tokens(times)
    return HistoryBlock(owners, lengths, width, slots, of_tokens(histories), met)


def _fill_up(block: HistoryBlock, num_rows: int, width: int) -> HistoryBlock:
    """Bring a compact block to [num_rows, width], every place of it a token."""
    starts = torch.arange(len(block.owners), device=block.items.device) * width
    slots = block.positions() + starts.repeat_interleave(block.lengths)
    missing = num_rows - len(block.owners)

    def of_slots(values: Tensor) -> Tensor:
        return values.new_zeros(num_rows * width).index_copy(0, slots, values)

    return HistoryBlock(
        torch.cat([block.owners, block.owners.new_full((missing,), -1)]),
        torch.cat([block.lengths, block.lengths.new_zeros(missing)]),
        width,
        None,
        of_slots(block.items),
        None if block.times is None else of_slots(block.times),
    )
