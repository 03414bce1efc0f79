"""When a sample stops to grow, what it took, and that it grows as the model sharpens."""

from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import GrownSample, effective_sample_size, grow_sample


def make_blocks(*, batch: int = 3, num_blocks: int = 10, width: int = 4, seed: int = 0) -> Tensor:
    """Give log weights as they come, [blocks, B, N]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_blocks, batch, width, generator=generator, dtype=torch.float64)


def joined(blocks: Tensor, count: int) -> Tensor:
    return torch.cat(list(blocks[:count]), dim=1)


@given(
    min_ess=st.floats(0.5, 40),
    max_samples=st.integers(4, 60),
    quantile=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    seed=st.integers(0, 2**16),
)
def test_stops_where_a_slow_search_over_all_samples_stops(
    min_ess: float, max_samples: int, quantile: float, seed: int
) -> None:
    blocks = make_blocks(num_blocks=20, seed=seed)
    rank = int(quantile * 2)  # of three rows in rising order
    sizes = [effective_sample_size(joined(blocks, count)) for count in range(1, 21)]
    allowed = [count for count in range(1, 21) if 4 * count <= max_samples]
    enough = [count for count in allowed if sizes[count - 1].sort().values[rank] >= min_ess]
    expected = min(enough, default=max(allowed))
    grown = grow_sample(
        iter(blocks), min_ess=min_ess, max_samples=max_samples, ess_quantile=quantile
    )
    assert grown.num_samples == 4 * expected
    assert_close(grown.ess_trace, torch.stack(sizes[:expected]))
    assert_close(grown.ess, sizes[expected - 1])
    own = grown.ess >= min_ess
    assert torch.equal(grown.reached, own | bool(enough))


def counting(blocks: Tensor, taken: list[int]) -> Iterator[Tensor]:
    for number, block in enumerate(blocks):
        taken.append(number)
        yield block


def test_takes_no_block_that_it_does_not_need() -> None:
    taken: list[int] = []
    grow_sample(counting(torch.zeros(9, 2, 4), taken), min_ess=8, max_samples=100)
    assert taken == [0, 1]  # equal weights: 8 draws are worth 8
    taken.clear()
    grow_sample(counting(torch.zeros(9, 2, 4), taken), min_ess=50, max_samples=14)
    assert taken == [0, 1, 2]  # a fourth would make 16


def test_the_worst_row_holds_up_the_batch_unless_a_quantile_lets_it_go() -> None:
    flat, peaked = torch.zeros(4), torch.tensor([0.0, -50.0, -50.0, -50.0])
    blocks = torch.stack([flat, flat, peaked]).expand(10, 3, 4)
    every = grow_sample(iter(blocks), min_ess=4, max_samples=100)
    assert every.num_samples == 16  # four blocks of the peaked row are worth 4
    assert every.reached.all()
    most = grow_sample(iter(blocks), min_ess=4, max_samples=100, ess_quantile=0.5)
    assert most.num_samples == 4
    assert most.reached.all()  # the cap was not met: the peaked row goes along with its few draws
    assert most.ess[2] < 4


def test_rows_that_the_cap_cuts_off_are_named() -> None:
    flat, peaked = torch.zeros(4), torch.tensor([0.0, -50.0, -50.0, -50.0])
    grown = grow_sample(
        iter(torch.stack([flat, peaked]).expand(10, 2, 4)), min_ess=7, max_samples=26
    )
    assert grown.num_samples == 24
    assert grown.reached.tolist() == [True, False]
    assert_close(grown.ess, torch.tensor([24.0, 6.0]))


def test_blocks_may_differ_in_width_and_never_pass_the_cap() -> None:
    widths = [4, 2, 5, 3]
    blocks = [torch.zeros(2, width) for width in widths]
    grown = grow_sample(iter(blocks), min_ess=100, max_samples=10)
    assert grown.num_samples == 6  # after 4 + 2 another 2 would do, but 5 came
    assert grow_sample(iter(blocks), min_ess=100, max_samples=11).num_samples == 11


def test_a_first_block_above_the_cap_counts_for_nothing() -> None:
    grown = grow_sample(iter(torch.zeros(3, 2, 4)), min_ess=1, max_samples=3)
    assert grown.num_samples == 0
    assert grown.ess_trace.shape == (0, 2)
    assert torch.equal(grown.ess, torch.zeros(2))
    assert not grown.reached.any()


def test_one_block_is_enough_where_no_size_is_asked_for() -> None:
    taken: list[int] = []
    grown = grow_sample(counting(make_blocks(), taken), min_ess=0, max_samples=100)
    assert taken == [0]
    assert grown.num_samples == 4
    assert grown.reached.all()


def test_ends_with_the_blocks() -> None:
    grown = grow_sample(iter(torch.zeros(3, 2, 4)), min_ess=100, max_samples=1000)
    assert grown.num_samples == 12
    assert not grown.reached.any()


def test_an_infinite_draw_of_weights_that_are_all_zero_ends_at_the_cap() -> None:
    block = torch.full((2, 4), float("-inf"))
    grown = grow_sample(iter(lambda: block, None), min_ess=1, max_samples=40)
    assert grown.num_samples == 40
    assert torch.equal(grown.ess, torch.zeros(2))


def draw_blocks(scores: Tensor, generator: torch.Generator) -> Callable[[], Tensor]:
    """Draw 16 candidates uniformly, time and again."""
    return lambda: scores[:, torch.randint(scores.shape[1], (16,), generator=generator)]


def grow_for(sharpness: float) -> GrownSample:
    """Grow a sample for the same model at another sharpness: scores of standard normal items."""
    generator = torch.Generator().manual_seed(0)
    scores = sharpness * torch.randn(8, 500, generator=generator)
    blocks = iter(draw_blocks(scores, generator), None)
    return grow_sample(blocks, min_ess=32, max_samples=20_000)


def test_grows_as_the_model_sharpens() -> None:
    # Uniform draws of scores N(0, a^2) are worth exp(-a^2) each, so 32 * exp(a^2) are needed on
    # average, and more for the worst of eight rows.
    grown = [grow_for(sharpness) for sharpness in (0.0, 1.0, 1.5, 2.0)]
    sizes = [sample.num_samples for sample in grown]
    assert sizes == sorted(sizes)
    assert sizes[0] == 32
    for size, sharpness in zip(sizes[1:], (1.0, 1.5, 2.0), strict=True):
        needed = 32 * torch.tensor(sharpness).square().exp().item()
        assert 0.5 * needed < size < 4 * needed
    assert all(bool(sample.reached.all()) for sample in grown)


def test_names_what_is_wrong() -> None:
    def grow(blocks: list[Tensor], **limits: float) -> None:
        grow_sample(iter(blocks), **{"min_ess": 4, "max_samples": 100} | limits)  # type: ignore[arg-type]

    with pytest.raises(ShapeError, match=r"`blocks` must have shape \[2, any\], got \[3, 4\]"):
        grow([torch.zeros(2, 1), torch.zeros(3, 4)])
    with pytest.raises(ArgumentError, match="`blocks` must yield one block or more, got none"):
        grow([])
    with pytest.raises(ArgumentError, match="`blocks` must hold one candidate each or more"):
        grow([torch.zeros(2, 0)])
    with pytest.raises(ArgumentError, match=r"`min_ess` must be at least 0, got -1"):
        grow([torch.zeros(2, 4)], min_ess=-1)
    with pytest.raises(ArgumentError, match="`max_samples` must be above 0, got 0"):
        grow([torch.zeros(2, 4)], max_samples=0)
    with pytest.raises(ArgumentError, match=r"`ess_quantile` must be from 0 to 1, got 1\.5"):
        grow([torch.zeros(2, 4)], ess_quantile=1.5)
