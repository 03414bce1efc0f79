"""Several streams of candidates side by side, under one Q."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from recsys.foundations import ArgumentError
from recsys.sampling.draw import Draw, Stream, draw_from


class MixedSampler:
    """Concatenate the candidates of several streams; repeats stay.

    Every column gets the log of the **sum** of the streams' expected counts, whichever stream drew
    it: what enters the softmax is the union, and in the union a candidate is expected that often.
    A stream may have Q = 0 for a candidate that another one reaches.

    Args:
        streams: At least one, over the same catalogue; at most one holds the positives themselves.

    Raises:
        ArgumentError: There is no stream.
    """

    def __init__(self, streams: Sequence[Stream]) -> None:
        if not streams:
            raise ArgumentError("`streams` must hold at least one sampler, got none.")
        if sum(stream.own_columns(1) is not None for stream in streams) > 1:
            raise ArgumentError("`streams` must hold at most one in-batch sampler, got more.")
        self.streams = tuple(streams)

    def draw(self, positive_rows: Tensor, generator: torch.Generator) -> Draw:
        """Draw the streams in turn: [sum of their S]; see `draw_from` for the errors."""
        return draw_from(self, positive_rows, generator)

    def draw_rows(self, positive_rows: Tensor, generator: torch.Generator) -> Tensor:
        """Draw candidates only: [sum of S], int64, stream after stream."""
        return torch.cat([stream.draw_rows(positive_rows, generator) for stream in self.streams])

    def log_expected_count(self, rows: Tensor, batch_size: int) -> Tensor:
        """Give the log of the summed expected counts: as `rows`, float64; -inf where all are 0."""
        counts = [stream.log_expected_count(rows, batch_size) for stream in self.streams]
        return torch.stack(counts).logsumexp(dim=0)

    def num_columns(self, batch_size: int) -> int:
        """Give the sum of the streams' S."""
        return sum(stream.num_columns(batch_size) for stream in self.streams)

    def own_columns(self, batch_size: int) -> Tensor | None:
        """Give the in-batch stream's columns, where they stand in the union; None without one."""
        first = 0
        for stream in self.streams:
            own = stream.own_columns(batch_size)
            if own is not None:
                return own + first
            first += stream.num_columns(batch_size)
        return None

    def state_dict(self) -> dict[str, Tensor]:
        """Give the streams' states under ``<position>.<name>``."""
        states = [stream.state_dict() for stream in self.streams]
        return {f"{i}.{name}": value for i, s in enumerate(states) for name, value in s.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand each stream its part."""
        for i, stream in enumerate(self.streams):
            prefix = f"{i}."
            stream.load_state_dict(
                {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            )
