"""Samples that grow row by row: each as a slow loop of its own, and none past the cap."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import GrownRows, effective_sample_size, grow_row_samples, grow_sample

WIDTH = 4


class Blocks:
    """Blocks of log weights that are made beforehand; remembers what was asked for."""

    def __init__(self, weights: Tensor) -> None:
        self.weights, self.asked = weights, list[list[int]]()  # [blocks, B, N]

    def __call__(self, rows: Tensor) -> Tensor:
        self.asked.append(rows.tolist())
        return self.weights[len(self.asked) - 1, rows]


def make_blocks(*, batch: int = 3, num_blocks: int = 15, seed: int = 0) -> Blocks:
    generator = torch.Generator().manual_seed(seed)
    spread = torch.linspace(0.2, 2, batch)[:, None]  # the last row is the most peaked
    return Blocks(torch.randn(num_blocks, batch, WIDTH, generator=generator) * spread)


def grow(blocks: Blocks, *, min_ess: float, max_samples: int) -> GrownRows:
    batch = blocks.weights.shape[1]
    return grow_row_samples(blocks, batch, min_ess=min_ess, max_samples=max_samples)


@given(min_ess=st.floats(0, 30), max_samples=st.integers(1, 60), seed=st.integers(0, 2**16))
def test_each_row_is_the_sample_that_grows_alone(
    min_ess: float, max_samples: int, seed: int
) -> None:
    blocks = make_blocks(seed=seed)
    grown = grow(blocks, min_ess=min_ess, max_samples=max_samples)
    for row in range(3):
        own = iter(blocks.weights[:, row : row + 1])
        alone = grow_sample(own, min_ess=min_ess, max_samples=max_samples)
        assert int(grown.num_samples[row]) == alone.num_samples <= max_samples
        assert bool(grown.reached[row]) == bool(alone.reached)
        assert_close(grown.ess[row], alone.ess[0], rtol=1e-5, atol=1e-6)


def test_the_worth_is_that_of_all_draws_of_the_row() -> None:
    blocks = make_blocks()
    grown = grow(blocks, min_ess=9, max_samples=48)
    for row, count in enumerate(grown.num_samples.tolist()):
        drawn = torch.cat(list(blocks.weights[: count // WIDTH, row]))
        assert_close(grown.ess[row], effective_sample_size(drawn))
    assert len(set(grown.num_samples.tolist())) > 1


def test_only_rows_that_are_short_are_drawn_for_again() -> None:
    flat, peaked = torch.zeros(WIDTH), torch.tensor([0.0, -50.0, -50.0, -50.0])
    blocks = Blocks(torch.stack([peaked, flat, peaked]).expand(9, 3, WIDTH))
    grown = grow(blocks, min_ess=2, max_samples=100)
    assert blocks.asked == [[0, 1, 2], [0, 2]]  # a peaked block is worth 1, a flat one 4
    assert grown.num_samples.tolist() == [8, 4, 8]
    assert_close(grown.ess, torch.tensor([2.0, 4.0, 2.0]))


def test_rows_that_the_cap_cuts_off_are_named() -> None:
    flat, peaked = torch.zeros(WIDTH), torch.tensor([0.0, -50.0, -50.0, -50.0])
    blocks = Blocks(torch.stack([flat, peaked]).expand(9, 2, WIDTH))
    grown = grow(blocks, min_ess=4, max_samples=11)
    assert blocks.asked == [[0, 1], [1]]  # a third block would make 12
    assert grown.num_samples.tolist() == [4, 8]
    assert grown.reached.tolist() == [True, False]


def test_one_block_is_enough_where_no_size_is_asked_for() -> None:
    blocks = make_blocks()
    grown = grow(blocks, min_ess=0, max_samples=100)
    assert blocks.asked == [[0, 1, 2]]
    assert grown.num_samples.tolist() == [WIDTH] * 3
    assert grown.reached.all()


@pytest.mark.parametrize("min_ess", [0, 1])
def test_a_first_block_above_the_cap_counts_for_nothing(min_ess: float) -> None:
    grown = grow(make_blocks(), min_ess=min_ess, max_samples=WIDTH - 1)
    assert grown.num_samples.tolist() == [0, 0, 0]
    assert torch.equal(grown.ess, torch.zeros(3))
    assert not grown.reached.any()
    shared = grow_sample(
        iter(make_blocks().weights), min_ess=min_ess, max_samples=WIDTH - 1, ess_quantile=0.5
    )
    assert shared.num_samples == 0
    assert not shared.reached.any()


def test_weights_that_are_all_zero_end_at_the_cap() -> None:
    blocks = Blocks(torch.full((99, 2, WIDTH), float("-inf")))
    grown = grow(blocks, min_ess=1, max_samples=40)
    assert grown.num_samples.tolist() == [40, 40]
    assert torch.equal(grown.ess, torch.zeros(2))
    assert not grown.reached.any()


def test_no_rows_need_no_block() -> None:
    grown = grow(make_blocks(batch=0), min_ess=1, max_samples=40)
    assert grown.num_samples.shape == grown.ess.shape == grown.reached.shape == (0,)


def test_names_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match=r"`min_ess` must be at least 0, got nan"):
        grow(make_blocks(), min_ess=float("nan"), max_samples=9)
    with pytest.raises(ArgumentError, match="`max_samples` must be above 0, got 0"):
        grow(make_blocks(), min_ess=1, max_samples=0)
    with pytest.raises(ShapeError, match=r"must have shape \[3, any\], got \[2, 4\]"):
        grow_row_samples(lambda _: torch.zeros(2, 4), 3, min_ess=1, max_samples=9)
    with pytest.raises(ArgumentError, match="the width of a block"):
        grow_row_samples(lambda _: torch.zeros(3, 0), 3, min_ess=1, max_samples=9)
