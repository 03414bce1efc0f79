"""Histories read item by item, so that one pass gives the state after every item.

Dimensions: Q queries, R histories of L items, T tokens in a block, D embedding width.
"""

import torch
from torch import Tensor, nn

from recsys.models.dropout import Dropout
from recsys.models.history_blocks import HistoryBlock, cut_compact, cut_dense, in_order
from recsys.models.history_encoder import ItemTable, QueryPlaces
from recsys.models.time_gaps import TimeGaps


class CausalHistory(nn.Module):
    """The state of a network that reads a history from its oldest item on.

    The state after an item has seen that item and the older ones, never a newer one or padding. So
    many queries along one history, each of which knows all but the newest items, are answered by
    one pass over it. A query that knows nothing gets a learned vector of its own.

    Training hides a share of the items: a vector of zeros stands in for the item's, while its time
    gap and its place in the order stay. Zeros, and not a learned vector, because nothing is hidden
    at search: there would be one more thing to learn that serves no query.

    Args:
        dim: D.
        network: Turns the tokens of a block into the states after them: [T, D] to [T, D].
        length: Items looked at, the newest ones.
        positions: Whether each position, counted from the oldest item, adds a learned vector.
        time_gaps: What is added for the time between the items; None: nothing.
        dropout: Share of the items that training hides.
        input_dropout: Share of the values of what enters the network that training sets to zero.
        init_std: Standard deviation of the first values of learned vectors.
    """

    num_interests = 1
    is_causal = True

    def __init__(
        self,
        dim: int,
        network: nn.Module,
        *,
        length: int,
        positions: bool,
        time_gaps: TimeGaps | None,
        dropout: float,
        input_dropout: float,
        init_std: float,
    ) -> None:
        super().__init__()
        self.length, self.dropout = length, dropout
        self.uses_times = time_gaps is not None
        self.time_gaps, self.network = time_gaps, network
        self.positions = nn.Parameter(torch.randn(length, dim) * init_std) if positions else None
        self.input_dropout = Dropout(input_dropout)
        self.empty = nn.Parameter(torch.randn(dim) * init_std)

    def forward(
        self,
        histories: Tensor,
        known: Tensor,
        table: ItemTable,
        *,
        times: Tensor | None = None,
        places: QueryPlaces | None = None,
    ) -> Tensor:
        """Encode histories; see `HistoryEncoder`. With places L is at most `length`."""
        histories, known = histories[:, : self.length], known[:, : self.length]
        times = times[:, : self.length] if times is not None and self.uses_times else None
        if self.training:
            blocks = cut_compact(histories, known, times)
        else:
            blocks = cut_dense(histories, known, times, length=self.length)
        owners, counts = _known_items(known, places)
        blocks_of, rows_of = _locate(blocks, histories)
        return self._read(
            blocks,
            table,
            blocks_of.index_select(0, owners),
            rows_of.index_select(0, owners),
            counts,
        )

    def _read(
        self,
        blocks: list[HistoryBlock],
        table: ItemTable,
        numbers: Tensor,
        rows: Tensor,
        counts: Tensor,
    ) -> Tensor:
        """Give the state of row `rows` in block `numbers` after its oldest `counts` items: [Q, D].

        Args:
            blocks: All histories that are not empty.
            table: The items' vectors.
            numbers: [Q], int64, in which block the query's history stands.
            rows: [Q], int64, and where there.
            counts: [Q], int64, items that the query knows; 0: nothing.
        """
        empty = (counts == 0).nonzero().squeeze(1)
        states, asked = [self.empty.expand(len(empty), -1)], [empty]
        for number, block in enumerate(blocks):
            queries = ((numbers == number) & (counts > 0)).nonzero().squeeze(1)
            firsts = block.first_tokens().index_select(0, rows.index_select(0, queries))
            read = self.network(self._inputs(block, table), block)  # [T, D]
            tokens = firsts + counts.index_select(0, queries) - 1
            states.append(read.index_select(0, tokens))
            asked.append(queries)
        return in_order(states, asked)

    def _inputs(self, block: HistoryBlock, table: ItemTable) -> Tensor:
        """Give what enters the network: [T, D]."""
        if self.training and self.dropout > 0:
            kept = torch.rand(block.items.shape, device=block.items.device) >= self.dropout
            # Only what is kept is looked up: an item that is hidden must not touch its row.
            slots = kept.nonzero().squeeze(1)
            vectors = table(block.items.index_select(0, slots))
            inputs = vectors.new_zeros(len(kept), vectors.shape[1]).index_copy(0, slots, vectors)
        else:
            inputs = table(block.items)
        if self.positions is not None:
            last = len(self.positions) - 1
            inputs = inputs + self.positions.index_select(0, block.positions().clamp(max=last))
        if self.time_gaps is not None:
            inputs = inputs + self.time_gaps(block)
        return self.input_dropout(inputs)  # type: ignore[no-any-return]


def _known_items(known: Tensor, places: QueryPlaces | None) -> tuple[Tensor, Tensor]:
    """Give each query's history, and how many of its known items the query knows: [Q], [Q]."""
    if places is None:
        return torch.arange(len(known), device=known.device), known.sum(dim=1)
    older = known.flip(1).cumsum(dim=1).flip(1)  # [R, L], known items from here to the oldest
    older = torch.cat([older, older.new_zeros(len(older), 1)], dim=1)  # [R, L + 1]
    return places.rows, older[places.rows, places.skipped]


def _locate(blocks: list[HistoryBlock], histories: Tensor) -> tuple[Tensor, Tensor]:
    """Find the block of each history and its row there, -1 for an empty one: [R], [R]."""
    numbers, places = torch.full((2, len(histories)), -1, device=histories.device)
    for number, block in enumerate(blocks):
        rows = (block.owners >= 0).nonzero().squeeze(1)
        held = block.owners.index_select(0, rows)
        numbers[held], places[held] = number, rows
    return numbers, places
