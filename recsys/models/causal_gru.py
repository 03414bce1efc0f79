"""A gated recurrent network over a history.

Dimensions: T tokens, n histories of width W, D embedding width.
"""

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from recsys.models.dropout import Dropout
from recsys.models.history_blocks import HistoryBlock


class CausalGru(nn.Module):
    """Layers of gated recurrent units, and a linear layer that reads the last one's state.

    Args:
        dim: D, of the state too.
        num_layers: Layers.
        dropout: Share of a layer's output that training sets to zero, before the next layer and
            before the linear one.

    Source:
        "Session-based recommendations with recurrent neural networks", ICLR 2016. Differs: the
        whole history at once rather than session-parallel batches.
    """

    def __init__(self, dim: int, *, num_layers: int, dropout: float) -> None:
        super().__init__()
        between = dropout if num_layers > 1 else 0.0  # torch warns where nothing is between
        self.gru = nn.GRU(dim, dim, num_layers, batch_first=True, dropout=between)
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(dim, dim)

    def forward(self, inputs: Tensor, block: HistoryBlock) -> Tensor:
        """Turn what stands for the items into the states after them: [T, D] to [T, D]."""
        histories = block.spread(inputs)  # [n, W, D]
        if block.slots is None:
            states, _ = self.gru(histories)
        else:
            packed = pack_padded_sequence(
                histories, block.lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.output(self.dropout(block.collect(states)))  # type: ignore[no-any-return]
