"""Hard negatives: which are drawn and how often, alone and at a stated share of a mixture."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError, make_generator
from recsys.sampling import (
    DrawRequest,
    HardNegativeSampler,
    MixedSampler,
    UniformProposal,
    WithReplacementSampler,
    draw,
)

NUM_CANDIDATES, NUM_TOP = 12, 4
# By degrees of freedom: the chi-square value that one seed in 1000 exceeds.
CRITICAL = {3: 16.27, 11: 31.26}


def make_catalogue() -> Tensor:
    return torch.randn(NUM_CANDIDATES, 3, generator=make_generator(0, "catalogue"))


def search(query_embeddings: Tensor) -> Tensor:
    """Search the catalogue by inner product, best first: [B, NUM_TOP]."""
    return (query_embeddings @ make_catalogue().T).topk(NUM_TOP, dim=1).indices


def make_sampler(num_sampled: int) -> HardNegativeSampler:
    return HardNegativeSampler(search, num_sampled=num_sampled, num_top=NUM_TOP)


def make_request(num_queries: int = 3) -> DrawRequest:
    queries = torch.randn(num_queries, 3, generator=make_generator(1, "queries"))
    return DrawRequest(torch.arange(num_queries), query_embeddings=queries)


def chi_square(drawn: Tensor, expected: Tensor) -> float:
    counts = torch.bincount(drawn, minlength=len(expected))
    assert counts[expected == 0].sum() == 0
    reached = expected > 0
    return float(((counts - expected)[reached] ** 2 / expected[reached]).sum())


def test_draws_alike_from_each_querys_own_top() -> None:
    request, num_sampled = make_request(), 20_000
    sample = make_sampler(num_sampled).sample(request, make_generator(2))
    assert sample.rows.shape == (3, num_sampled)
    expected = sample.log_expected_count(torch.arange(NUM_CANDIDATES)).exp()  # [3, C]
    assert request.query_embeddings is not None
    tops = search(request.query_embeddings)
    assert len({tuple(sorted(top)) for top in tops.tolist()}) == 3  # the lists do differ
    for query in range(3):
        reached = (expected[query] > 0).nonzero()[:, 0].tolist()
        assert reached == sorted(tops[query].tolist())
        assert_close(expected[query][reached], torch.full((4,), 5000.0, dtype=torch.float64))
        assert chi_square(sample.rows[query], expected[query]) < CRITICAL[3]
    assert sample.expected_size == num_sampled
    assert_close(expected.sum(dim=1).tolist(), [20_000.0] * 3)


def test_q_is_the_same_for_rows_by_query() -> None:
    sample = make_sampler(6).sample(make_request(), make_generator(0))
    rows = torch.tensor([[0, 5, 7], [7, 7, 11], [1, 2, 3]])
    shared = sample.log_expected_count(torch.arange(NUM_CANDIDATES))
    assert torch.equal(sample.log_expected_count(rows), shared.gather(1, rows))
    assert set(shared.flatten().tolist()) == {-math.inf, math.log(6 / 4)}


def test_a_repeat_in_the_list_counts_twice() -> None:
    sampler = HardNegativeSampler(lambda _: torch.tensor([[5, 2, 5]]), num_sampled=6, num_top=3)
    request = DrawRequest(torch.tensor([0]), query_embeddings=torch.zeros(1, 3))
    sample = sampler.sample(request, make_generator(0))
    counts = sample.log_expected_count(torch.tensor([2, 5, 6])).exp()
    assert_close(counts.tolist(), [[2.0, 4.0, 0.0]])
    by_query = sample.log_expected_count(torch.tensor([[2, 5, 6, 5]])).exp()
    assert_close(by_query.tolist(), [[2.0, 4.0, 0.0, 4.0]])


def test_a_mixture_at_a_stated_share_is_drawn_as_its_q_says() -> None:
    # A quarter of hard negatives: 10,000 of 40,000. A candidate of the top is expected
    # 30,000 / 12 + 10,000 / 4 = 5,000 times, any other 2,500 times.
    mixed = MixedSampler(
        [
            WithReplacementSampler(UniformProposal(NUM_CANDIDATES), num_sampled=30_000),
            make_sampler(10_000),
        ]
    )
    request = make_request()
    result = draw(mixed, request, make_generator(3))
    assert result.rows.shape == (3, 40_000)
    assert result.num_draws == 40_000
    assert request.query_embeddings is not None
    for query, top in enumerate(search(request.query_embeddings)):
        expected = torch.full((NUM_CANDIDATES,), 2500.0).index_fill(0, top, 5000.0)
        # The counts of the streams are fixed, so the union varies no more than free draws would.
        assert chi_square(result.rows[query], expected) < CRITICAL[11]
        assert_close(result.log_q[query], expected[result.rows[query]].log())
        assert_close(result.positive_log_q[query], expected[query].log())
        hard = torch.isin(result.rows[query], top).double().mean()
        assert hard.item() == pytest.approx(0.25 + 0.75 * NUM_TOP / NUM_CANDIDATES, abs=0.01)


def test_alone_it_refuses_a_positive_outside_the_top() -> None:
    request = make_request()
    with pytest.raises(ArgumentError, match=r"`positive_rows` must .* whose expected count is 0"):
        draw(make_sampler(5), request, make_generator(0))
    assert request.query_embeddings is not None
    inside = DrawRequest(search(request.query_embeddings)[:, 0], None, request.query_embeddings)
    result = draw(make_sampler(5), inside, make_generator(0))
    assert_close(result.positive_log_q, torch.full((3,), math.log(5 / 4)))


def test_draws_the_same_from_the_same_seed() -> None:
    first, again, other = (
        make_sampler(50).sample(make_request(), make_generator(seed)).rows for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_has_no_state() -> None:
    sampler = make_sampler(2)
    sampler.update(torch.tensor([0]), torch.zeros(1, 3))
    assert sampler.state_dict() == {}
    sampler.load_state_dict({})
    with pytest.raises(FormatError, match="state must be empty"):
        sampler.load_state_dict({"x": torch.zeros(1)})


def test_names_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match="`num_sampled` must be above 0, got 0"):
        make_sampler(0)
    with pytest.raises(ArgumentError, match="`num_top` must be above 0, got 0"):
        HardNegativeSampler(search, num_sampled=1, num_top=0)
    with pytest.raises(ArgumentError, match="`query_embeddings` must be given for hard negatives"):
        make_sampler(1).sample(DrawRequest(torch.tensor([0])), make_generator(0))
    wide = HardNegativeSampler(search, num_sampled=1, num_top=NUM_TOP + 1)
    with pytest.raises(ShapeError, match=r"`search\(query_embeddings\)` must have shape \[3, 5\]"):
        wide.sample(make_request(), make_generator(0))
    short = HardNegativeSampler(
        lambda queries: torch.full((len(queries), 2), -1), num_sampled=1, num_top=2
    )
    with pytest.raises(ArgumentError, match="`num_top` must be a number of candidates that the"):
        short.sample(make_request(), make_generator(0))
