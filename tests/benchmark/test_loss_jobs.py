"""The ways to compute a loss that are timed against each other compute the same one."""

import torch
from torch.testing import assert_close

from recsys.benchmark import peak_bytes
from recsys.benchmark.loss_jobs import (
    BLOCKS,
    CHUNKS,
    IN_BATCH,
    PLAIN,
    ROUNDED,
    loss_jobs,
    make_inputs,
    other_ways,
    run_passes,
)


def test_blocks_and_all_logits_give_the_same_gradients() -> None:
    inputs = make_inputs(100, 16, seed=0)
    hits = inputs.positive_rows[:, None] == inputs.sampled_rows
    assert hits.any()  # or the mask would not be compared
    gradients = {}
    for name, job in loss_jobs(inputs, (BLOCKS, ROUNDED, PLAIN)).items():
        job()
        found = [leaf.grad for leaf in inputs.leaves()]
        gradients[name] = [one.clone() for one in found if one is not None]
        assert len(gradients[name]) == 3
    for blocks, rounded, plain in zip(*gradients.values(), strict=True):
        largest = float(plain.abs().max())
        assert_close(blocks, plain, rtol=0, atol=1e-6 * largest)
        assert_close(rounded, plain, rtol=0, atol=0.02 * largest)  # bfloat16: 8 bits


def test_all_logits_take_memory_and_blocks_do_not() -> None:
    inputs = make_inputs(2048, 4, seed=0)
    peaks = {name: peak_bytes(job) for name, job in loss_jobs(inputs, (BLOCKS, PLAIN)).items()}
    matrix = 2048 * 2048 * 4
    assert peaks[PLAIN] > 2 * matrix
    assert peaks[BLOCKS] < matrix / 2


def test_every_way_leaves_a_gradient() -> None:
    ways = other_ways(plainly=True)
    assert PLAIN in ways
    assert PLAIN not in other_ways(plainly=False)
    assert (CHUNKS in ways) == hasattr(torch.nn.functional, "linear_cross_entropy")
    for name in (BLOCKS, ROUNDED, IN_BATCH, *ways):
        inputs = make_inputs(40, 8, seed=1)
        run_passes(inputs, name)
        gradient = inputs.queries.grad
        assert gradient is not None
        assert bool((gradient != 0).any())
