"""A loss in several threads gives what it gives in one, and the same bits each time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import (
    map_in_torch_threads,
    operator_threads,
    set_threads,
    thread_bound,
)
from recsys.losses import (
    block_gradients,
    full_logistic_loss,
    full_softmax_loss,
    sampled_logistic_loss,
    sampled_softmax_loss,
)

BATCH, CANDIDATES, DIM = 1100, 403, 8  # three parts; no multiple of what is worked on at once


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before, bound = torch.get_num_threads(), thread_bound()
    yield
    set_threads(bound or before)


def make_leaves(dtype: torch.dtype) -> list[Tensor]:
    rng = torch.Generator().manual_seed(3)
    sizes = (BATCH, BATCH, CANDIDATES)
    return [torch.randn(size, DIM, generator=rng, dtype=dtype).requires_grad_() for size in sizes]


def sampled(loss: Callable[..., Tensor], **more: Any) -> Callable[[list[Tensor]], Tensor]:
    rng = torch.Generator().manual_seed(4)
    ids = {
        "positive_rows": torch.randint(600, (BATCH,), generator=rng),
        "sampled_rows": torch.randint(600, (CANDIDATES,), generator=rng),
    }
    log_q = -3 * torch.rand(CANDIDATES, generator=rng)
    mask = torch.rand(BATCH, CANDIDATES, generator=rng) < 0.9

    def compute(leaves: list[Tensor]) -> Tensor:
        return loss(
            *leaves,
            **ids,
            positive_log_q=torch.full((BATCH,), -4.0, dtype=leaves[0].dtype),
            sampled_log_q=log_q.to(leaves[0].dtype),
            sampled_mask=mask,
            temperature=0.7,
            **more,
        )

    return compute


def full(loss: Callable[..., Tensor], **more: Any) -> Callable[[list[Tensor]], Tensor]:
    rows = torch.randint(CANDIDATES, (BATCH,), generator=torch.Generator().manual_seed(5))
    return lambda leaves: (
        loss(leaves[0], leaves[2], positive_rows=rows, temperature=0.7, **more)
        + 0 * leaves[1].sum()
    )


WEIGHTS = torch.rand(BATCH, generator=torch.Generator().manual_seed(6))
LOSSES = {
    "sampled softmax": sampled(sampled_softmax_loss),
    "weighted as announced": sampled(sampled_softmax_loss, loss_weights=WEIGHTS),
    "sampled logistic": sampled(sampled_logistic_loss),
    "full softmax": full(full_softmax_loss),
    "full logistic": full(full_logistic_loss),
}
ROUNDED = sampled(sampled_softmax_loss, product_dtype=torch.bfloat16)


def compute_with(
    threads: int, loss: Callable[[list[Tensor]], Tensor], dtype: torch.dtype = torch.float64
) -> tuple[Tensor, ...]:
    set_threads(threads)
    leaves = make_leaves(dtype)
    losses = loss(leaves)
    (losses * WEIGHTS.to(dtype)).sum().backward()
    return losses.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)


@pytest.fixture
def parts_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []

    def count(job: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
        made.append(len(parts))
        return map_in_torch_threads(job, parts)

    monkeypatch.setattr(block_gradients, "map_in_torch_threads", count)
    return made


@pytest.mark.parametrize("name", LOSSES)
def test_three_threads_give_what_one_gives(name: str, parts_made: list[int]) -> None:
    one = compute_with(1, LOSSES[name])
    assert set(parts_made) == {1}
    parts_made.clear()
    assert_close(compute_with(3, LOSSES[name]), one, rtol=1e-11, atol=1e-13)
    assert max(parts_made) == 3


@pytest.mark.parametrize("name", LOSSES)
def test_threads_give_the_same_bits_each_time(name: str) -> None:
    first = compute_with(3, LOSSES[name], torch.float32)
    for _ in range(3):
        assert_close(compute_with(3, LOSSES[name], torch.float32), first, rtol=0, atol=0)


def test_rounded_products_have_blocks_of_their_own_in_each_thread() -> None:
    one, three = (compute_with(threads, ROUNDED, torch.float32) for threads in (1, 3))
    # A query's products are the same; a candidate's are rounded once for each block of queries.
    assert_close(three[:3], one[:3], rtol=1e-6, atol=1e-6)
    assert (three[3] - one[3]).norm() < 0.01 * one[3].norm()


def test_few_logits_are_not_split(parts_made: list[int]) -> None:
    set_threads(3)
    leaves = [leaf.detach()[:50].requires_grad_() for leaf in make_leaves(torch.float32)]
    full_softmax_loss(
        leaves[0], leaves[2], positive_rows=torch.arange(50), temperature=1.0
    ).sum().backward()
    assert set(parts_made) == {1}


def test_sums_of_several_threads_are_added_up_in_threads_too(parts_made: list[int]) -> None:
    rng = torch.Generator().manual_seed(0)
    made = [torch.randn(rows, 65, generator=rng) for rows in (100, 4099)]
    rows, gradients = torch.randint(4099, (100,), generator=rng), []
    for threads in (1, 3):
        set_threads(threads)
        leaves = [leaf.clone().requires_grad_() for leaf in made]
        biases = torch.zeros(4099, requires_grad=True)
        losses = full_softmax_loss(
            *leaves, positive_rows=rows, temperature=5.0, catalogue_biases=biases
        )
        torch.autograd.backward(losses.sum())
        gradients.append([leaf.grad for leaf in (*leaves, biases)])
    assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)
    assert parts_made[-2] == 3
    assert parts_made[-1] > 1


@pytest.mark.parametrize(
    ("candidates", "block_size"), [(2**15 + 3, None), (2**15 + 3, 2**16), (5000, 500)]
)
def test_operators_on_long_rows_have_all_threads_also_within_a_step(
    candidates: int, block_size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []

    def note(job: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
        if len(parts) == 1:
            numbers.append(torch.get_num_threads())
        return map_in_torch_threads(job, parts)

    monkeypatch.setattr(block_gradients, "map_in_torch_threads", note)
    set_threads(3)
    queries, catalogue = torch.ones(100, 2, requires_grad=True), torch.ones(candidates, 2)
    with operator_threads(1):
        losses = full_softmax_loss(
            queries,
            catalogue,
            positive_rows=torch.zeros(100, dtype=torch.int64),
            temperature=1.0,
            catalogue_block_size=block_size,
        )
        torch.autograd.backward(losses.sum())
        assert torch.get_num_threads() == 1
    assert 3 in numbers


def test_a_loss_in_inference_mode_takes_all_threads(parts_made: list[int]) -> None:
    set_threads(3)
    leaves = make_leaves(torch.float64)
    expected = LOSSES["full softmax"](leaves).detach()
    parts_made.clear()
    with torch.inference_mode():
        assert_close(LOSSES["full softmax"](leaves), expected)
    assert parts_made == [3]
