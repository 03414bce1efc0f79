"""What all losses over a sample have in common, and each against one written term by term."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import (
    bpr_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    refined_softmax_loss,
    sampled_logistic_loss,
    sampled_softmax_loss,
)

LEAVES = (
    "query_embeddings",
    "positive_embeddings",
    "sampled_embeddings",
    "positive_biases",
    "sampled_biases",
)


def make_inputs(
    *,
    batch: int = 3,
    positives: int = 2,
    sampled: int = 7,
    own_samples: bool = False,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> dict[str, Any]:
    """Make inputs with accidental hits, own columns, a mask, and padding among the positives.

    Q is the sample's size times a distribution over the ten rows there are.
    """
    rng = torch.Generator().manual_seed(seed)
    shape = (batch, sampled) if own_samples else (sampled,)
    shares = torch.rand(10, generator=rng, dtype=dtype) + 0.1
    log_q = (max(sampled, 1) * shares / shares.sum()).log()
    # Positives of a query are different ones; the last may be padding, and then repeats the first.
    positive_rows = torch.rand(batch, 10, generator=rng).argsort(dim=1)[:, :positives]
    weights = torch.rand(batch, positives, generator=rng, dtype=dtype) + 0.1
    padded = torch.rand(batch, generator=rng) < 0.5 if positives > 1 else torch.zeros(batch) > 0
    weights[padded, -1] = 0
    positive_rows[padded, -1] = positive_rows[padded, 0]
    sampled_rows = torch.randint(10, shape, generator=rng)
    return {
        "query_embeddings": torch.randn(batch, 4, generator=rng, dtype=dtype),
        "positive_embeddings": torch.randn(batch, positives, 4, generator=rng, dtype=dtype),
        "sampled_embeddings": torch.randn(*shape, 4, generator=rng, dtype=dtype),
        "positive_rows": positive_rows,
        "sampled_rows": sampled_rows,
        "positive_log_q": log_q[positive_rows],
        "sampled_log_q": log_q[sampled_rows],
        "temperature": 0.7,
        "positive_biases": torch.randn(batch, positives, generator=rng, dtype=dtype),
        "sampled_biases": torch.randn(shape, generator=rng, dtype=dtype),
        "own_columns": torch.randint(max(sampled, 1), (batch,), generator=rng),
        "sampled_mask": torch.rand(batch, sampled, generator=rng) < 0.8,
        "positive_weights": weights,
    }


@dataclass(frozen=True)
class Terms:
    """One query's logits without log Q, log Q, and weights, with only what counts."""

    positives: list[Tensor]
    positive_log_q: list[Tensor]
    weights: list[Tensor]
    negatives: list[Tensor]
    negative_log_q: list[Tensor]
    num_draws: int

    def uncorrected(self) -> "Terms":
        zeros = [torch.zeros((), dtype=torch.float64)]
        one, other = zeros * len(self.positives), zeros * len(self.negatives)
        return Terms(self.positives, one, self.weights, self.negatives, other, self.num_draws)

    def corrected_positives(self) -> list[Tensor]:
        return [u - q for u, q in zip(self.positives, self.positive_log_q, strict=True)]

    def corrected_negatives(self) -> list[Tensor]:
        return [u - q for u, q in zip(self.negatives, self.negative_log_q, strict=True)]


def softmax_slowly(terms: Terms) -> Tensor:
    positives = terms.corrected_positives()
    total = torch.stack([u.exp() for u in positives + terms.corrected_negatives()]).sum()
    return torch.stack(
        [w * (total.log() - u) for w, u in zip(terms.weights, positives, strict=True)]
    ).sum()


def refined_slowly(terms: Terms) -> Tensor:
    if not terms.negatives:
        return 0 * torch.stack(terms.positives).sum()
    own_share = sum(float(q.exp()) for q in terms.positive_log_q) / terms.num_draws
    pairs = zip(terms.negatives, terms.negative_log_q, strict=True)
    ratios = [u.exp() / (q.exp() / terms.num_draws / (1 - own_share)) for u, q in pairs]
    mean = torch.stack(ratios).mean()
    z = torch.stack([u.exp() for u in terms.positives]).sum() + mean
    total = torch.zeros((), dtype=torch.float64)
    for u, w in zip(terms.positives, terms.weights, strict=True):
        weight = w - u.exp() / z * torch.stack(terms.weights).sum()
        total = total + weight.detach() * (torch.stack(ratios).sum().log() - u)
    return total


def logistic_slowly(terms: Terms, target: float = 1.0) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for u, w in zip(terms.corrected_positives(), terms.weights, strict=True):
        total = total - w * (target * u.sigmoid().log() + (1 - target) * (-u).sigmoid().log())
    for u in terms.corrected_negatives():
        total = total - (-u).sigmoid().log()
    return total


def bpr_slowly(terms: Terms) -> Tensor:
    total = 0 * torch.stack(terms.positives).sum()
    for u, w in zip(terms.positives, terms.weights, strict=True):
        for v in terms.negatives:
            total = total - w * (u - v).sigmoid().log() / len(terms.negatives)
    return total


@dataclass(frozen=True)
class Estimator:
    """A loss over a sample: how it is called, what it must equal, what it takes."""

    loss: Callable[..., Tensor]
    slowly: Callable[[Terms], Tensor]
    removes_hits: bool = True
    takes_log_q: bool = True

    def __call__(self, inputs: dict[str, Any]) -> Tensor:
        left_out = () if self.takes_log_q else ("positive_log_q", "sampled_log_q")
        arguments = {name: value for name, value in inputs.items() if name not in left_out}
        if self.loss is refined_softmax_loss:
            arguments |= {"num_draws": inputs["sampled_rows"].shape[-1] or 1}
        return self.loss(**arguments)


def negative_sampling_slowly(terms: Terms) -> Tensor:
    return logistic_slowly(terms.uncorrected())


def uncorrected_softmax(**inputs: Any) -> Tensor:
    return sampled_softmax_loss(**inputs, positive_log_q=None, sampled_log_q=None)


ESTIMATORS = {
    "standard": Estimator(sampled_softmax_loss, softmax_slowly),
    "hits_kept": Estimator(
        partial(sampled_softmax_loss, remove_accidental_hits=False), softmax_slowly, False
    ),
    "none": Estimator(
        uncorrected_softmax, lambda terms: softmax_slowly(terms.uncorrected()), takes_log_q=False
    ),
    "refined": Estimator(refined_softmax_loss, refined_slowly),
    "noise_contrastive": Estimator(noise_contrastive_loss, logistic_slowly, False),
    "soft_targets": Estimator(
        partial(noise_contrastive_loss, positive_target=0.25),
        partial(logistic_slowly, target=0.25),
        False,
    ),
    "negative_sampling": Estimator(
        negative_sampling_loss, negative_sampling_slowly, False, takes_log_q=False
    ),
    "sampled_logistic": Estimator(sampled_logistic_loss, logistic_slowly),
    "bpr": Estimator(bpr_loss, bpr_slowly, takes_log_q=False),
}

every_estimator = pytest.mark.parametrize("name", list(ESTIMATORS))


def find_terms(inputs: dict[str, Any], b: int, removes_hits: bool) -> Terms:
    query = inputs["query_embeddings"][b] / inputs["temperature"]
    kept = [t for t, w in enumerate(inputs["positive_weights"][b]) if w > 0]
    own_rows = {int(inputs["positive_rows"][b, t]) for t in kept}
    shared = inputs["sampled_rows"].dim() == 1
    rows, vectors, biases, log_q = (
        inputs[f"sampled_{what}"] if shared else inputs[f"sampled_{what}"][b]
        for what in ("rows", "embeddings", "biases", "log_q")
    )
    left = [
        k
        for k in range(len(rows))
        if inputs["sampled_mask"][b, k]
        and k != inputs["own_columns"][b]
        and not (removes_hits and int(rows[k]) in own_rows)
    ]
    temperature = inputs["temperature"]
    return Terms(
        [
            query @ inputs["positive_embeddings"][b, t]
            + inputs["positive_biases"][b, t] / temperature
            for t in kept
        ],
        [inputs["positive_log_q"][b, t] for t in kept],
        [inputs["positive_weights"][b, t] for t in kept],
        [query @ vectors[k] + biases[k] / temperature for k in left],
        [log_q[k] for k in left],
        len(rows) or 1,
    )


def take_gradients(losses: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    weights = torch.linspace(0.5, 2, len(losses), dtype=losses.dtype)
    return list(torch.autograd.grad((losses * weights).sum(), leaves, materialize_grads=True))


@every_estimator
@settings(max_examples=25)
@given(
    positives=st.integers(1, 3),
    sampled=st.integers(0, 8),
    own_samples=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_equals_the_loss_written_term_by_term(
    name: str, positives: int, sampled: int, own_samples: bool, seed: int
) -> None:
    estimator = ESTIMATORS[name]
    inputs = make_inputs(positives=positives, sampled=sampled, own_samples=own_samples, seed=seed)
    if positives == 1 and seed % 2 == 0:  # [B] instead of [B, 1]
        one = [n for n in inputs if n.startswith("positive_")]
        actual_inputs = inputs | {n: inputs[n].squeeze(1).requires_grad_(False) for n in one}
    else:
        actual_inputs = dict(inputs)
    actual_leaves = [actual_inputs[n].clone().requires_grad_() for n in LEAVES]
    actual = estimator(actual_inputs | dict(zip(LEAVES, actual_leaves, strict=True)))
    leaves = [inputs[n].clone().requires_grad_() for n in LEAVES]
    slow_inputs = inputs | dict(zip(LEAVES, leaves, strict=True))
    expected = torch.stack(
        [
            estimator.slowly(find_terms(slow_inputs, b, estimator.removes_hits))
            for b in range(len(inputs["positive_rows"]))
        ]
    )
    assert_close(actual, expected, rtol=1e-10, atol=1e-11)
    gradients = take_gradients(actual, actual_leaves), take_gradients(expected, leaves)
    for gradient, wanted in zip(*gradients, strict=True):
        assert_close(gradient, wanted.reshape(gradient.shape), rtol=1e-9, atol=1e-10)


@every_estimator
@pytest.mark.parametrize("own_samples", [False, True])
def test_what_leaves_gets_a_gradient_of_exactly_zero(name: str, own_samples: bool) -> None:
    estimator = ESTIMATORS[name]
    inputs = make_inputs(batch=1, sampled=40, own_samples=own_samples, seed=3)
    sampled = inputs["sampled_embeddings"].requires_grad_()
    positive = inputs["positive_embeddings"].requires_grad_()
    (gradient, of_positives) = take_gradients(estimator(inputs), [sampled, positive])
    rows = inputs["sampled_rows"].reshape(1, -1)
    counted = inputs["positive_rows"][inputs["positive_weights"] > 0]
    leaves = ~inputs["sampled_mask"] | (torch.arange(40) == inputs["own_columns"])
    hits = torch.isin(rows, counted)
    assert (hits & ~leaves).any()
    if estimator.removes_hits:
        leaves = leaves | hits
    of_columns = gradient.reshape(40, 4)
    assert torch.equal(of_columns[leaves[0]], torch.zeros(int(leaves.sum()), 4).double())
    assert (of_columns[~leaves[0]] != 0).all()
    padding = inputs["positive_weights"] == 0
    assert padding.any()
    assert torch.equal(of_positives[padding], torch.zeros(1, 4).double())


@every_estimator
def test_padding_may_hold_anything(name: str) -> None:
    inputs = make_inputs(batch=8, positives=3)
    padding = inputs["positive_weights"] == 0
    assert padding.any()
    other = dict(inputs)
    for what, value in (("biases", -7.0), ("log_q", float("-inf")), ("rows", 0)):
        other[f"positive_{what}"] = inputs[f"positive_{what}"].masked_fill(padding, value)
    other["positive_embeddings"] = inputs["positive_embeddings"].masked_fill(padding[..., None], 9)
    query = other["query_embeddings"].requires_grad_()
    losses = ESTIMATORS[name](other)
    assert_close(losses, ESTIMATORS[name](inputs), rtol=1e-13, atol=1e-13)
    assert torch.isfinite(take_gradients(losses, [query])[0]).all()


@every_estimator
def test_a_query_of_padding_alone_has_no_positive_term(name: str) -> None:
    inputs = make_inputs() | {"positive_weights": torch.zeros(3, 2, dtype=torch.float64)}
    leaves = [inputs[n].requires_grad_() for n in LEAVES]
    losses = ESTIMATORS[name](inputs)
    gradients = take_gradients(losses, leaves)
    if name in ("noise_contrastive", "soft_targets", "negative_sampling", "sampled_logistic"):
        assert (losses > 0).all()  # the sample's part
    else:
        assert torch.equal(losses, torch.zeros_like(losses))
        for gradient in gradients:
            assert torch.equal(gradient, torch.zeros_like(gradient))
    assert torch.equal(gradients[1], torch.zeros_like(gradients[1]))


@every_estimator
@pytest.mark.parametrize("own_samples", [False, True])
def test_a_row_whose_sample_is_all_masked(name: str, own_samples: bool) -> None:
    inputs = make_inputs(positives=1, own_samples=own_samples)
    inputs["sampled_mask"][1] = False
    leaves = [inputs[n].requires_grad_() for n in LEAVES]
    losses = ESTIMATORS[name](inputs)
    gradients = take_gradients(losses, leaves)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    if name in ("noise_contrastive", "soft_targets", "negative_sampling", "sampled_logistic"):
        terms = find_terms(inputs, 1, True)
        assert not terms.negatives
        assert_close(losses[1], ESTIMATORS[name].slowly(terms))
    else:
        assert losses[1].item() == 0
        assert torch.equal(gradients[0][1], torch.zeros(4, dtype=torch.float64))
        assert torch.equal(gradients[1][1], torch.zeros(1, 4, dtype=torch.float64))


@every_estimator
@settings(max_examples=10)
@given(seed=st.integers(0, 2**16))
def test_ignores_the_order_of_the_sample(name: str, seed: int) -> None:
    inputs = make_inputs(seed=seed) | {"own_columns": None}
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    names = ("sampled_embeddings", "sampled_rows", "sampled_log_q", "sampled_biases")
    shuffled = inputs | {n: inputs[n][order] for n in names}
    shuffled |= {"sampled_mask": inputs["sampled_mask"][:, order]}
    assert_close(ESTIMATORS[name](shuffled), ESTIMATORS[name](inputs), rtol=1e-12, atol=1e-12)


@every_estimator
def test_depends_on_a_constant_in_the_scores_only_where_scores_normalise_themselves(
    name: str,
) -> None:
    inputs = make_inputs()
    shifted = inputs | {n: inputs[n] + 3 for n in ("positive_biases", "sampled_biases")}
    actual, expected = ESTIMATORS[name](shifted), ESTIMATORS[name](inputs)
    if name in ("noise_contrastive", "soft_targets", "negative_sampling", "sampled_logistic"):
        assert ((actual - expected).abs() > 0.1).all()
    else:
        assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "ignores"),
    [("standard", True), ("noise_contrastive", False), ("sampled_logistic", False)],
)
def test_only_a_softmax_ignores_a_constant_factor_of_q(name: str, ignores: bool) -> None:
    inputs = make_inputs()
    scaled = inputs | {n: inputs[n] + 1.5 for n in ("positive_log_q", "sampled_log_q")}
    actual, expected = ESTIMATORS[name](scaled), ESTIMATORS[name](inputs)
    if ignores:
        assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    else:
        assert ((actual - expected).abs() > 0.05).all()


@pytest.mark.parametrize("name", ["standard", "refined", "noise_contrastive", "sampled_logistic"])
def test_a_shared_sample_in_many_blocks_equals_one_for_each_query(name: str) -> None:
    inputs = make_inputs(batch=260, sampled=4200)  # blocks are 256 x 4096
    names = ("sampled_embeddings", "sampled_rows", "sampled_log_q", "sampled_biases")
    repeated = inputs | {n: inputs[n].expand(260, *inputs[n].shape) for n in names}
    leaves = [inputs[n].requires_grad_() for n in ("query_embeddings", "positive_embeddings")]
    shared, own = ESTIMATORS[name](inputs), ESTIMATORS[name](repeated)
    assert_close(shared, own, rtol=1e-12, atol=1e-12)
    pairs = zip(take_gradients(shared, leaves), take_gradients(own, leaves), strict=True)
    for one, other in pairs:
        assert_close(one, other, rtol=1e-9, atol=1e-11)


@every_estimator
@pytest.mark.parametrize("own_samples", [False, True])
def test_computes_in_float32_from_half_precision_and_under_autocast(
    name: str, own_samples: bool
) -> None:
    inputs = make_inputs(batch=8, sampled=40, own_samples=own_samples, dtype=torch.float32)
    rounded = {n: inputs[n].bfloat16() for n in LEAVES}
    exact = ESTIMATORS[name](inputs | {n: value.float() for n, value in rounded.items()})
    assert torch.equal(ESTIMATORS[name](inputs | rounded), exact)
    leaf = inputs["query_embeddings"].requires_grad_()
    expected = ESTIMATORS[name](inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = ESTIMATORS[name](inputs)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, expected)
    assert torch.equal(*(take_gradients(one, [leaf])[0] for one in (inside, expected)))


# The refined loss's weight is a constant, so that its gradient is not that of its value.
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "refined"])
def test_a_learned_temperature_gets_the_gradient_of_finite_differences(name: str) -> None:
    inputs = make_inputs()
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    (gradient,) = take_gradients(
        ESTIMATORS[name](inputs | {"temperature": temperature}), [temperature]
    )
    weights = torch.linspace(0.5, 2, 3, dtype=torch.float64)
    above, below = (
        (ESTIMATORS[name](inputs | {"temperature": 0.7 + step}) * weights).sum()
        for step in (1e-6, -1e-6)
    )
    assert_close(gradient, (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


def test_never_holds_all_logits_of_a_shared_sample() -> None:
    # 256 x 66,000 logits would be 68 MB; blocks are 256 x 4096, and the mask is the caller's.
    inputs = make_inputs(batch=256, positives=1, sampled=66_000, dtype=torch.float32)
    inputs["sampled_embeddings"].requires_grad_()
    saved: list[int] = []

    def count(tensor: Tensor) -> Tensor:
        saved.append(tensor.nbytes)
        return tensor

    with (
        torch.profiler.profile(profile_memory=True) as profile,
        torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor),
    ):
        torch.autograd.backward(ESTIMATORS["refined"](inputs).sum())
    largest = max(event.self_cpu_memory_usage for event in profile.events())  # bytes
    assert largest < 256 * 66_000 * 4 / 8
    assert sum(saved) < 256 * 66_000 * 4 / 8


@every_estimator
def test_names_the_argument_that_is_wrong(name: str) -> None:
    estimator, inputs = ESTIMATORS[name], make_inputs()
    shapes: list[tuple[str, tuple[int, ...]]] = [
        ("query_embeddings", (3,)),
        ("positive_embeddings", (2, 2, 4)),
        ("positive_rows", (3,)),
        ("positive_biases", (3,)),
        ("positive_weights", (3, 1)),
        ("sampled_embeddings", (7, 3)),
        ("sampled_biases", (3, 7)),
        ("own_columns", (2,)),
        ("sampled_mask", (7,)),
        ("sampled_mask", (3, 6)),
    ]
    if estimator.takes_log_q:
        shapes += [("positive_log_q", (3,)), ("sampled_log_q", (3, 7))]
    for wrong, shape in shapes:
        with pytest.raises(ShapeError, match=f"`{wrong}` must have shape"):
            estimator(inputs | {wrong: torch.zeros(shape, dtype=torch.int64)})
    with pytest.raises(ArgumentError, match="`temperature` must be above 0"):
        estimator(inputs | {"temperature": 0.0})


@pytest.mark.parametrize(
    "loss", [noise_contrastive_loss, sampled_logistic_loss, negative_sampling_loss]
)
@pytest.mark.parametrize("target", [0.0, 1.5, float("nan")])
def test_refuses_a_target_that_is_no_share(loss: Callable[..., Tensor], target: float) -> None:
    inputs = make_inputs()
    if loss is negative_sampling_loss:
        del inputs["positive_log_q"], inputs["sampled_log_q"]
    with pytest.raises(ArgumentError, match="`positive_target` must be above 0 and at most 1"):
        loss(**inputs, positive_target=target)
