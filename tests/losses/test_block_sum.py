"""Losses over shared candidates: what is computed, what is held, and both against all logits."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from recsys.benchmark import peak_bytes
from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import (
    full_logistic_loss,
    full_softmax_loss,
    importance_sampling_loss,
    in_batch_softmax_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    refined_softmax_loss,
    sampled_logistic_loss,
    sampled_softmax_loss,
)
from recsys.losses.block_sum import common_factor
from recsys.losses.products import PlainProducts

LEAVES = ("queries", "positives", "candidates", "biases")


def make_inputs(
    *,
    batch: int = 6,
    candidates: int = 9,
    dim: int = 4,
    rows: int = 12,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> dict[str, Tensor]:
    """Make leaves, ids out of a few rows, so that some are hits, log Q, and weights of losses."""
    rng = torch.Generator().manual_seed(seed)
    made = {
        "queries": torch.randn(batch, dim, generator=rng, dtype=torch.float64),
        "positives": torch.randn(batch, dim, generator=rng, dtype=torch.float64),
        "candidates": torch.randn(candidates, dim, generator=rng, dtype=torch.float64),
        "biases": torch.randn(candidates, generator=rng, dtype=torch.float64),
    }
    leaves = {name: value.to(dtype).requires_grad_() for name, value in made.items()}
    weights = torch.rand(batch, generator=rng, dtype=torch.float64)
    weights[::3] = 0
    weights[-1] = 1  # not all are 0
    return leaves | {
        "positive_rows": torch.randint(rows, (batch,), generator=rng),
        "candidate_rows": torch.randint(rows, (candidates,), generator=rng),
        "mask": torch.rand(batch, candidates, generator=rng) < 0.8,
        "positive_log_q": (-3 - torch.rand(batch, generator=rng, dtype=torch.float64)).to(dtype),
        "candidate_log_q": (-3 * torch.rand(candidates, generator=rng)).to(dtype),
        "weights": weights.to(dtype),
    }


def sampled(inputs: dict[str, Tensor], loss: Callable[..., Tensor], **more: Any) -> Tensor:
    return loss(
        inputs["queries"],
        inputs["positives"],
        inputs["candidates"],
        positive_rows=inputs["positive_rows"],
        sampled_rows=inputs["candidate_rows"],
        temperature=0.5,
        sampled_biases=inputs["biases"],
        **more,
    )


def corrected(inputs: dict[str, Tensor], loss: Callable[..., Tensor], **more: Any) -> Tensor:
    log_q = {
        "positive_log_q": inputs["positive_log_q"],
        "sampled_log_q": inputs["candidate_log_q"],
    }
    return sampled(inputs, loss, **log_q, **more)


def over_catalogue(inputs: dict[str, Tensor], loss: Callable[..., Tensor], **more: Any) -> Tensor:
    rows = inputs["positive_rows"] % len(inputs["candidates"])
    return loss(
        inputs["queries"] + inputs["positives"],
        inputs["candidates"],
        positive_rows=rows,
        temperature=0.5,
        catalogue_biases=inputs["biases"],
        **more,
    )


def by_query(inputs: dict[str, Tensor], **more: Any) -> Tensor:
    """The first queries alone, each with two positives."""
    batch = len(inputs["queries"])
    few = inputs | {name: inputs[name][: batch // 2] for name in ("queries", "positives")}
    return over_catalogue(few, full_softmax_loss, query_rows=torch.arange(batch) // 2, **more)


def in_batch(inputs: dict[str, Tensor], **more: Any) -> Tensor:
    candidates = torch.cat([inputs["positives"], inputs["candidates"]])
    return in_batch_softmax_loss(
        inputs["queries"] * inputs["biases"].sum(),
        candidates,
        candidate_rows=torch.cat([inputs["positive_rows"], inputs["candidate_rows"]]),
        candidate_log_q=torch.cat([inputs["positive_log_q"], inputs["candidate_log_q"]]),
        temperature=0.5,
        **more,
    )


def two_positives(inputs: dict[str, Tensor], **more: Any) -> Tensor:
    """A second positive for every query, whose weight is 0 for some."""
    other = inputs["positives"].flip(0)
    second = {
        "positives": torch.stack([inputs["positives"], other], dim=1),
        "positive_rows": torch.stack([inputs["positive_rows"], inputs["positive_rows"] + 20], 1),
        "positive_log_q": torch.stack([inputs["positive_log_q"], inputs["positive_log_q"] - 1], 1),
    }
    shares = torch.stack([inputs["weights"] + 0.1, inputs["weights"]], dim=1)
    return corrected(
        inputs | second,
        refined_softmax_loss,
        num_draws=20.0,
        positive_weights=shares.detach(),
        **more,
    )


LOSSES: dict[str, Callable[..., Tensor]] = {
    "sampled_softmax": lambda inputs, **more: corrected(inputs, sampled_softmax_loss, **more),
    "masked": lambda inputs, **more: corrected(
        inputs, sampled_softmax_loss, sampled_mask=inputs["mask"], **more
    ),
    "refined": lambda inputs, **more: corrected(
        inputs, refined_softmax_loss, num_draws=20.0, **more
    ),
    "two_positives": two_positives,
    "importance_sampling": lambda inputs, **more: corrected(
        inputs, importance_sampling_loss, **more
    ),
    "sampled_logistic": lambda inputs, **more: corrected(inputs, sampled_logistic_loss, **more),
    "noise_contrastive": lambda inputs, **more: corrected(inputs, noise_contrastive_loss, **more),
    "negative_sampling": lambda inputs, **more: sampled(inputs, negative_sampling_loss, **more),
    "in_batch": in_batch,
    "full_softmax": lambda inputs, **more: over_catalogue(inputs, full_softmax_loss, **more),
    "full_logistic": lambda inputs, **more: over_catalogue(inputs, full_logistic_loss, **more),
    "by_query": by_query,
}
every_loss = pytest.mark.parametrize("name", list(LOSSES))


def take_gradients(total: Tensor, inputs: dict[str, Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(total, [inputs[name] for name in LEAVES]))


def compare_slowly(losses: Tensor, inputs: dict[str, Tensor]) -> list[Tensor]:
    """Take the gradients of a weighted sum loss by loss, each by a backward pass of its own."""
    gradients = [torch.zeros_like(inputs[name]) for name in LEAVES]
    for loss, weight in zip(losses, inputs["weights"], strict=True):
        parts = torch.autograd.grad(loss, [inputs[name] for name in LEAVES], retain_graph=True)
        gradients = [sum_ + weight * part for sum_, part in zip(gradients, parts, strict=True)]
    return gradients


@every_loss
@given(batch=st.integers(1, 9), candidates=st.integers(1, 12), seed=st.integers(0, 2**16))
@settings(max_examples=20)
def test_announced_weights_change_no_gradient(
    name: str, batch: int, candidates: int, seed: int
) -> None:
    inputs = make_inputs(batch=2 * batch, candidates=candidates, seed=seed)
    losses = LOSSES[name](inputs, loss_weights=inputs["weights"])
    assert_close(losses, LOSSES[name](inputs), rtol=1e-13, atol=1e-13)
    total = (losses * inputs["weights"]).sum() / 7
    expected = compare_slowly(LOSSES[name](inputs), inputs)
    for actual, wanted in zip(take_gradients(total, inputs), expected, strict=True):
        assert_close(actual, wanted / 7, rtol=1e-9, atol=1e-12)


@every_loss
def test_other_weights_than_the_announced_ones_are_obeyed(name: str) -> None:
    inputs = make_inputs()
    announced = inputs["weights"].flip(0) + 0.5
    losses = LOSSES[name](inputs, loss_weights=announced)
    expected = compare_slowly(LOSSES[name](inputs), inputs)
    total = (losses * inputs["weights"]).sum()
    for actual, wanted in zip(take_gradients(total, inputs), expected, strict=True):
        assert_close(actual, wanted, rtol=1e-9, atol=1e-12)


@every_loss
def test_a_backward_pass_under_autocast_rounds_nothing(name: str) -> None:
    inputs = make_inputs(dtype=torch.float32)
    gradients = []
    for enabled in (False, True):
        losses = LOSSES[name](inputs, loss_weights=inputs["weights"].flip(0) + 0.5)
        total = (losses * inputs["weights"]).sum()  # not as announced: all is computed again
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            gradients.append(take_gradients(total, inputs))
    for actual, wanted in zip(*gradients, strict=True):
        assert_close(actual, wanted, rtol=1e-5, atol=1e-6)


@every_loss
@given(batch=st.integers(1, 5), candidates=st.integers(1, 40), seed=st.integers(0, 2**16))
@settings(max_examples=20, deadline=None)
def test_float32_whose_candidates_are_filled_up_gives_what_float64_does(
    name: str, batch: int, candidates: int, seed: int
) -> None:
    found, terms = [], []
    for dtype in (torch.float32, torch.float64):
        inputs = make_inputs(batch=2 * batch, candidates=candidates, dtype=dtype, seed=seed)
        losses = LOSSES[name](inputs)
        found.append(losses.double())
        terms.append([one.double() for one in take_gradients(losses.sum(), inputs)])
    assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)
    for actual, wanted in zip(*terms, strict=True):
        assert_close(actual, wanted, rtol=1e-3, atol=1e-3)


def compute_plainly(inputs: dict[str, Tensor]) -> Tensor:
    """The sampled softmax the plain way: [B, S] logits, a mask, one cross-entropy."""
    queries = inputs["queries"] / 0.5
    positives = (queries * inputs["positives"]).sum(dim=1) - inputs["positive_log_q"]
    logits = queries @ inputs["candidates"].T + inputs["biases"] / 0.5 - inputs["candidate_log_q"]
    hits = inputs["positive_rows"][:, None] == inputs["candidate_rows"]
    logits = torch.cat([positives[:, None], logits.masked_fill(hits, float("-inf"))], dim=1)
    targets = torch.zeros(len(logits), dtype=torch.int64)
    return torch.nn.functional.cross_entropy(logits, targets, reduction="none")


@given(
    batch=st.integers(1, 600),
    candidates=st.integers(1, 900),
    dim=st.integers(1, 70),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=15, deadline=None)
def test_float32_is_as_close_to_float64_as_the_plain_loss_in_float32(
    batch: int, candidates: int, dim: int, seed: int
) -> None:
    make = partial(make_inputs, batch=batch, candidates=candidates, dim=dim, rows=300, seed=seed)
    exact, inputs = make(), make(dtype=torch.float32)
    wanted = compute_plainly(exact)
    losses = LOSSES["sampled_softmax"](inputs, loss_weights=inputs["weights"])
    size = 1 + wanted.abs().max()
    assert_close(losses.double() / size, wanted / size, rtol=0, atol=2e-6)
    scale = exact["weights"].sum()
    actual, expected, plain = (
        take_gradients((losses * one["weights"]).sum() / scale.to(losses.dtype), one)
        for losses, one in (
            (losses, inputs),
            (wanted, exact),
            (compute_plainly(inputs), inputs),
        )
    )
    for one, two, three in zip(actual, expected, plain, strict=True):
        largest = two.abs().max() + 1e-30
        error = (one - two).abs().max() / largest
        # 1e-6, or what rounding does to the plain loss too: logits of 50 are rounded by 2e-6.
        assert error < 1e-6 + 2 * (three - two).abs().max() / largest


class _CountedProducts(TorchDispatchMode):
    """Counts the multiplications of matrix products."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.multiplications = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        if any(word in name for word in ("mm", "_linear_pointwise", "bmm")):
            result = func(*args, **(kwargs or {}))
            shapes = [one.shape for one in args if isinstance(one, Tensor) and one.dim() == 2]
            self.multiplications += result.numel() * shapes[-2][1]
            return result
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("weighing", "products"), [("none", 3), ("announced", 3), ("other", 5), ("blocks", 4)]
)
def test_three_products_give_the_loss_and_its_gradients(weighing: str, products: int) -> None:
    batch, candidates, dim = 64, 512, 16
    inputs = make_inputs(batch=batch, candidates=candidates, dim=dim, dtype=torch.float32)
    weights = torch.ones(batch) if weighing == "none" else inputs["weights"]
    announced = {"loss_weights": weights} if weighing == "announced" else {}
    blocks = {"catalogue_block_size": 256} if weighing == "blocks" else {}
    with _CountedProducts() as counted:
        losses = LOSSES["full_softmax"](inputs, **announced, **blocks)
        torch.autograd.backward((losses * weights).sum())
    assert counted.multiplications == products * batch * candidates * dim


def test_gradients_of_one_side_take_two_products_and_none_takes_one() -> None:
    inputs = make_inputs(batch=64, candidates=512, dim=16, dtype=torch.float32)
    one_product = 64 * 512 * 16
    detached = {name: inputs[name].detach() for name in LEAVES}
    for left in (["candidates", "biases"], ["queries", "positives"]):
        with _CountedProducts() as counted:
            given_ = inputs | {name: detached[name] for name in left}
            torch.autograd.backward(LOSSES["sampled_softmax"](given_).sum())
        # The bias's gradient is a product of a matrix and a vector.
        assert counted.multiplications == 2 * one_product
    with torch.no_grad(), _CountedProducts() as counted:
        LOSSES["sampled_softmax"](inputs)
    assert counted.multiplications == one_product


def of_padding_alone(inputs: dict[str, Tensor], padding: Tensor) -> Tensor:
    """The queries of padding have no positive, and no candidate is left to them."""
    return sampled_softmax_loss(
        inputs["queries"],
        inputs["positives"][:, None],
        inputs["candidates"],
        positive_rows=torch.full((len(padding), 1), 20),
        sampled_rows=inputs["candidate_rows"],
        positive_log_q=inputs["positive_log_q"][:, None],
        sampled_log_q=inputs["candidate_log_q"],
        temperature=0.5,
        sampled_biases=inputs["biases"],
        sampled_mask=inputs["mask"] & ~padding[:, None],
        positive_weights=1.0 - padding[:, None].float(),
    )


@pytest.mark.parametrize("batch", [1, 4])
def test_padding_alone_without_a_candidate_has_loss_and_gradient_zero(batch: int) -> None:
    inputs = make_inputs(batch=batch)
    losses = of_padding_alone(inputs, torch.ones(batch, dtype=torch.bool))
    assert torch.equal(losses, torch.zeros(batch, dtype=torch.float64))
    for gradient in take_gradients(losses.sum(), inputs):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_padding_alone_among_other_queries_leaves_their_gradients_and_takes_one_pass() -> None:
    batch, candidates, dim = 64, 512, 16
    inputs = make_inputs(batch=batch, candidates=candidates, dim=dim, rows=12)
    padding = torch.arange(batch) % 3 == 1
    with _CountedProducts() as counted:
        losses = of_padding_alone(inputs, padding)
        actual = take_gradients(losses.sum(), inputs)
    assert counted.multiplications == 3 * batch * candidates * dim
    names = ("queries", "positives", "positive_rows", "positive_log_q", "mask")
    rest = inputs | {name: inputs[name][~padding] for name in names}
    others = of_padding_alone(rest, padding[~padding])
    assert_close(losses[~padding], others, rtol=1e-12, atol=1e-12)
    assert torch.equal(losses[padding], torch.zeros_like(losses[padding]))
    for one, wanted in zip(actual, take_gradients(others.sum(), inputs), strict=True):
        assert_close(one, wanted, rtol=1e-10, atol=1e-12)


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_announced_weights_of_a_wide_spread_take_one_pass(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = make_inputs(batch=200, candidates=300, rows=100, dtype=dtype)
    weights = 10 ** torch.linspace(-4, 0, 200, dtype=dtype)
    weights[::7] = 0
    calls, logits = [], PlainProducts.logits

    def count(self: PlainProducts, rows: slice, columns: slice) -> tuple[Tensor, Tensor | None]:
        calls.append(rows)
        return logits(self, rows, columns)

    monkeypatch.setattr(PlainProducts, "logits", count)
    losses = LOSSES[name](inputs, loss_weights=weights)
    take_gradients((losses * weights).sum() / 3, inputs)
    assert len(calls) == 1


@pytest.mark.parametrize("grouped", [False, True])
def test_a_weight_a_hundred_million_times_smaller_is_obeyed(grouped: bool) -> None:
    # Two queries at right angles: what the second gives candidates stands in a column of its own.
    # Of two candidates alike in it, softmax's slopes are -1/2 at the positive, 1/2 at the other.
    queries = torch.eye(2)
    candidates = torch.zeros(2, 2).requires_grad_()
    rows = torch.arange(2) if grouped else None
    announced, weights = torch.tensor([1e8, 1.0]), torch.tensor([1e8, 5.0])
    losses = full_softmax_loss(
        queries,
        candidates,
        positive_rows=torch.zeros(2, dtype=torch.int64),
        temperature=1.0,
        query_rows=rows,
        loss_weights=announced,
    )
    (gradient,) = torch.autograd.grad((losses * weights).sum(), [candidates])
    assert_close(gradient[:, 1], torch.tensor([-2.5, 2.5]), rtol=1e-6, atol=0)


def test_what_is_too_small_to_be_rounded_like_the_rest_has_the_common_factor() -> None:
    expected = torch.tensor([1.0, 3.3e-44])  # the second is a multiple of 1.4e-45
    factor = common_factor(expected / 7, expected)
    assert factor is not None
    assert float(factor) == pytest.approx(1 / 7)


def test_what_is_not_known_has_no_common_factor() -> None:
    unknown = torch.tensor([1.0, float("nan")])
    assert common_factor(torch.zeros(2), unknown) is None
    assert common_factor(torch.ones(2), unknown) is None


@every_loss
def test_no_tensor_is_as_large_as_the_matrix_of_logits(name: str) -> None:
    inputs = make_inputs(batch=2048, candidates=2048, dim=8, rows=10**6, dtype=torch.float32)
    matrix = (1024 if name == "by_query" else 2048) * 2048 * 4
    if name == "in_batch":
        matrix *= 2

    def run() -> None:
        torch.autograd.backward(LOSSES[name](inputs).sum())

    run()
    assert peak_bytes(run) < 0.75 * matrix


def test_a_removed_candidate_gets_a_gradient_of_exactly_zero() -> None:
    inputs = make_inputs(dtype=torch.float32)
    # Column 3 is a hit of queries 0 and 1; the mask takes it from the others.
    inputs["candidate_rows"][3] = 7
    inputs["positive_rows"][:2], inputs["positive_rows"][2:] = 7, 8
    mask = torch.ones(6, 9, dtype=torch.bool)
    mask[2:, 3] = False
    for loss in (sampled_softmax_loss, sampled_logistic_loss, refined_softmax_loss):
        more = {"num_draws": 20.0} if loss is refined_softmax_loss else {}
        losses = corrected(inputs, loss, sampled_mask=mask, **more)
        gradients = dict(zip(LEAVES, take_gradients(losses.sum(), inputs), strict=True))
        assert torch.equal(gradients["candidates"][3], torch.zeros(4))
        assert gradients["biases"][3] == 0
        assert bool((gradients["candidates"][:3] != 0).any())


def test_hits_are_found_where_they_are_too_many_to_list() -> None:
    # All 2,048 x 1,024 candidates but one are hits of all queries: only that one is left.
    inputs = make_inputs(batch=2048, candidates=1024, dim=2, dtype=torch.float64)
    inputs["positive_rows"][:], inputs["candidate_rows"][:] = 3, 3
    inputs["candidate_rows"][5] = 4
    losses = corrected(inputs, sampled_softmax_loss)
    queries, left = inputs["queries"] / 0.5, inputs["candidates"][5]
    positives = (queries * inputs["positives"]).sum(dim=1) - inputs["positive_log_q"]
    others = queries @ left + inputs["biases"][5] / 0.5 - inputs["candidate_log_q"][5]
    assert_close(losses, torch.log1p((others - positives).exp()))


def test_a_second_derivative_is_refused() -> None:
    inputs = make_inputs()
    losses = corrected(inputs, sampled_softmax_loss)
    with pytest.raises(ArgumentError, match="`create_graph` must be False"):
        torch.autograd.grad(losses.sum(), [inputs["queries"]], create_graph=True)


@pytest.mark.gpu
@every_loss
@pytest.mark.parametrize("product_dtype", [None, torch.bfloat16])
def test_cuda_gives_what_the_cpu_gives_also_under_autocast(
    name: str, product_dtype: torch.dtype | None
) -> None:
    exact = make_inputs(batch=300, candidates=5000, dim=16, rows=400)
    inputs = {
        key: value.detach().float().cuda() if value.is_floating_point() else value.cuda()
        for key, value in exact.items()
    }
    inputs |= {key: inputs[key].requires_grad_() for key in LEAVES}
    if name == "by_query":
        pytest.skip("its query rows are made on the CPU")
    if name == "importance_sampling" and product_dtype is not None:
        pytest.skip("its products are not rounded")
    wanted = LOSSES[name](exact)
    with torch.autocast("cuda", dtype=torch.float16):
        rounding = {} if product_dtype is None else {"product_dtype": product_dtype}
        losses = LOSSES[name](inputs, **rounding)
    assert losses.dtype == torch.float32
    tolerance = 1e-4 if product_dtype is None else 0.05
    assert_close(losses.double().cpu(), wanted, rtol=tolerance, atol=tolerance)
    expected = take_gradients((wanted * exact["weights"]).sum(), exact)
    actual = take_gradients((losses * inputs["weights"]).sum(), inputs)
    for one, other in zip(actual, expected, strict=True):
        assert (one.double().cpu() - other).norm() < tolerance * other.norm()


@pytest.mark.gpu
@pytest.mark.parametrize("loss", [sampled_softmax_loss, sampled_logistic_loss])
def test_what_is_removed_on_cuda_gets_a_gradient_of_exactly_zero(
    loss: Callable[..., Tensor],
) -> None:
    inputs = {
        key: value.detach().float().cuda() if value.is_floating_point() else value.cuda()
        for key, value in make_inputs().items()
    }
    inputs |= {key: inputs[key].requires_grad_() for key in LEAVES}
    inputs["candidate_rows"][:] = 7
    inputs["positive_rows"][:3], inputs["positive_rows"][3:] = 7, 8
    mask = torch.ones(6, 9, dtype=torch.bool, device="cuda")
    mask[3:, 2] = False
    losses = corrected(inputs, loss, sampled_mask=mask)
    gradients = dict(zip(LEAVES, take_gradients(losses.sum(), inputs), strict=True))
    assert torch.equal(gradients["candidates"][2], torch.zeros(4, device="cuda"))
    assert bool((gradients["candidates"][0] != 0).any())
    assert all(bool(torch.isfinite(one).all()) for one in gradients.values())


@every_loss
def test_weights_of_another_number_of_losses_are_refused(name: str) -> None:
    inputs = make_inputs()
    with pytest.raises(ShapeError, match=r"`loss_weights` must have shape \[6\], got \[5\]"):
        LOSSES[name](inputs, loss_weights=torch.ones(5))
