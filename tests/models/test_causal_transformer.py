"""The attention with a term for distances against torch's own, and the buckets of distances."""

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from recsys.models.causal_transformer import DistanceBias, biased_attention
from recsys.models.distance_buckets import distance_buckets


@pytest.mark.parametrize("width", [1, 2, 99, 100, 101, 230])
def test_attention_some_queries_at_a_time_equals_torchs_own(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(3, 2, 4, width, 5, generator=generator, requires_grad=True)
    bias = torch.randn(4, width, width, generator=generator, requires_grad=True)
    newer = torch.ones(width, width, dtype=torch.bool).triu(1)
    weights = torch.randn(2, 4, width, 5, generator=generator)
    results = []
    for attend in (biased_attention, functional.scaled_dot_product_attention):
        queries, keys, values = parts.unbind()
        seen = attend(queries, keys, values, bias.masked_fill(newer, float("-inf")))
        results.append((seen, *torch.autograd.grad((seen * weights).sum(), (parts, bias))))
    for ours, torchs in zip(*results, strict=True):
        assert_close(ours, torchs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("width", [1, 5, 40])
def test_the_bias_of_a_pair_is_the_number_of_its_distance(width: int) -> None:
    distance = DistanceBias(2)
    torch.nn.init.normal_(distance.values)
    bias = distance(width)
    assert bias.shape == (2, width, width)
    for query in range(width):
        for key in range(width):
            if key > query:
                assert bias[:, query, key].tolist() == [float("-inf")] * 2
            else:
                expected = distance.values[:, int(distance_buckets(torch.tensor(query - key)))]
                assert torch.equal(bias[:, query, key], expected)


def test_distances_are_exact_up_to_16_and_then_fall_into_quarters_of_doublings() -> None:
    # The bounds are 16 * 2^(k / 4): 19.03, 22.63, 26.91, 32, 38.05, ..., 128, ..., 215.3.
    distances = torch.tensor([0, 1, 15, 16, 19, 20, 22, 23, 26, 27, 31, 32, 38, 39, 128, 215, 216])
    expected = [0, 1, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 28, 30, 31]
    assert distance_buckets(distances).tolist() == expected
    assert distance_buckets(torch.tensor([10**6])).tolist() == [31]
