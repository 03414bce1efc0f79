"""A log whose items follow Zipf's law, read in shuffled epochs as training reads it."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

BATCH_SIZE = 256


def make_zipf_counts(num_items: int, num_events: int) -> Tensor:
    """Give [C] counts that fall as 1 / rank, at least 1, with the sum asked for."""
    weights = 1 / torch.arange(1, num_items + 1, dtype=torch.float64)
    counts = (weights / weights.sum() * num_events).long().clamp(min=1)
    counts[0] += num_events - counts.sum()
    return counts


def read_shuffled(counts: Tensor, num_epochs: int, seed: int) -> Iterator[Tensor]:
    """Yield batches of items, every event once an epoch; the sizes must divide."""
    generator = torch.Generator().manual_seed(seed)
    events = torch.repeat_interleave(torch.arange(len(counts)), counts)
    assert len(events) % BATCH_SIZE == 0
    for _ in range(num_epochs):
        order = torch.randperm(len(events), generator=generator)
        yield from events[order].split(BATCH_SIZE)


@pytest.fixture(scope="session")
def zipf_counts() -> Tensor:
    """Give counts of 400 items in 20,480 events: 80 batches; the first item is 15 % of them."""
    return make_zipf_counts(400, 80 * BATCH_SIZE)


@pytest.fixture(scope="session")
def shuffled_epochs() -> Callable[[Tensor, int, int], Iterator[Tensor]]:
    """Give the function from counts, a number of epochs and a seed to batches of 256 items."""
    return read_shuffled
