"""Label smoothing against torch's own, and its estimate from a sample by enumeration."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import full_softmax_loss, sampled_label_smoothing_term


def make_inputs(seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "query_embeddings": torch.randn(5, 3, generator=rng, dtype=torch.float64),
        "catalogue_embeddings": torch.randn(4, 3, generator=rng, dtype=torch.float64),
        "positive_rows": torch.randint(4, (5,), generator=rng),
        "temperature": 0.5,
    }


@given(smoothing=st.floats(0, 0.99), seed=st.integers(0, 2**16), columns=st.integers(1, 5))
def test_the_full_softmax_with_the_term_is_torchs_smoothed_cross_entropy(
    smoothing: float, seed: int, columns: int
) -> None:
    biases = torch.linspace(-1, 1, 4, dtype=torch.float64)
    temperature = torch.tensor(0.5, dtype=torch.float64)
    inputs = make_inputs(seed) | {"catalogue_biases": biases, "temperature": temperature}
    names = ("query_embeddings", "catalogue_embeddings", "catalogue_biases", "temperature")
    leaves = [inputs[name].requires_grad_() for name in names]
    weights = torch.linspace(-1, 2, 5, dtype=torch.float64)
    losses = full_softmax_loss(**inputs, label_smoothing=smoothing, catalogue_block_size=columns)
    logits = (leaves[0] @ leaves[1].T + biases) / temperature
    expected = functional.cross_entropy(
        logits, inputs["positive_rows"], label_smoothing=smoothing, reduction="none"
    )
    assert_close(losses, expected, rtol=1e-12, atol=1e-12)
    for actual, wanted in zip(
        torch.autograd.grad((losses * weights).sum(), leaves),
        torch.autograd.grad((expected * weights).sum(), leaves),
        strict=True,
    ):
        assert_close(actual, wanted, rtol=1e-10, atol=1e-12)


CHANCES = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)  # of one draw


def estimate(
    inputs: dict[str, Any], samples: Tensor, form: str, *, smoothing: float = 0.3, **more: Any
) -> Tensor:
    """Estimate the term from samples of three draws: [B] for the samples [3] or [B, 3]."""
    catalogue, rows = inputs["catalogue_embeddings"], inputs["positive_rows"]
    vectors: Any = catalogue[samples]
    log_q = (3 * CHANCES[samples]).log()
    if form == "pair":  # two columns shared by the queries, one of each query
        own = catalogue[samples[2:]].expand(len(rows), 1, -1)
        vectors = catalogue[samples[:2]], own
        log_q = log_q.expand(len(rows), 3)
    elif form == "own":
        vectors, log_q = vectors.expand(len(rows), -1, -1), log_q.expand(len(rows), 3)
    return sampled_label_smoothing_term(
        inputs["query_embeddings"],
        catalogue[rows],
        vectors,
        sampled_log_q=log_q,
        num_candidates=4,
        temperature=0.5,
        smoothing=smoothing,
        **more,
    )


@pytest.mark.parametrize("form", ["shared", "own", "pair"])
def test_the_estimate_is_unbiased_over_all_samples(form: str) -> None:
    inputs = make_inputs()
    inputs["catalogue_embeddings"].requires_grad_()
    mean = torch.zeros(5, dtype=torch.float64)
    for sample in itertools.product(range(4), repeat=3):  # three draws with replacement
        chance = CHANCES[list(sample)].prod()
        mean = mean + chance * estimate(inputs, torch.tensor(sample), form)
    exact = full_softmax_loss(**inputs, label_smoothing=0.3) - full_softmax_loss(**inputs)
    assert_close(mean, exact, rtol=1e-12, atol=1e-12)
    [actual], [expected] = (
        torch.autograd.grad(terms.sum(), inputs["catalogue_embeddings"]) for terms in (mean, exact)
    )
    assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", ["shared", "own", "pair"])
def test_columns_that_were_not_drawn_count_as_if_they_were_not_there(form: str) -> None:
    # Column 1 is each query's own; the mask takes column 0 out for the last two queries.
    inputs, sample = make_inputs(), torch.tensor([2, 3, 0])
    mask = torch.ones(5, 3, dtype=torch.bool)
    mask[3:, 0] = False
    own = torch.ones(5, dtype=torch.int64)
    actual = estimate(inputs, sample, form, own_columns=own, drawn_mask=mask)
    logits = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T / 0.5
    weights = 1 / (3 * CHANCES) / 4
    means = logits[:, 0] * weights[0]
    means[:3] += logits[:3, 2] * weights[2]
    positives = logits.gather(1, inputs["positive_rows"][:, None]).squeeze(1)
    assert_close(actual, 0.3 * (positives - means), rtol=1e-12, atol=1e-12)
    without_mask = estimate(inputs, sample, form, own_columns=own)
    assert_close(without_mask[:3], actual[:3], rtol=1e-12, atol=1e-12)


def test_an_in_batch_estimate_is_too_small_by_the_share_of_one_draw() -> None:
    # Batches of three with replacement, the first the query's own: the mean over the other two,
    # under the Q of three draws, is 2/3 of the catalogue's.
    inputs = make_inputs()
    own = torch.zeros(5, dtype=torch.int64)
    mean = torch.zeros(5, dtype=torch.float64)
    for others in itertools.product(range(4), repeat=2):
        sample = torch.tensor([1, *others])
        chance = CHANCES[list(others)].prod()
        mean += chance * estimate(inputs, sample, "shared", own_columns=own)
    logits = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T / 0.5
    positives = logits.gather(1, inputs["positive_rows"][:, None]).squeeze(1)
    assert_close(mean, 0.3 * (positives - logits.mean(dim=1) * 2 / 3), rtol=1e-12, atol=1e-12)


def test_names_the_argument_that_is_wrong() -> None:
    inputs, sample = make_inputs(), torch.tensor([0, 1, 2])
    for smoothing in (-0.1, 1.0, float("nan")):
        with pytest.raises(ArgumentError, match="`label_smoothing` must be at least 0 and below 1"):
            full_softmax_loss(**inputs, label_smoothing=smoothing)
        with pytest.raises(ArgumentError, match="`smoothing` must be at least 0 and below 1"):
            estimate(inputs, sample, "shared", smoothing=smoothing)
    with pytest.raises(ArgumentError, match="`drawn_mask` must hold booleans"):
        estimate(inputs, sample, "shared", drawn_mask=torch.ones(5, 3))
    with pytest.raises(ShapeError, match="`own_columns` must have shape"):
        estimate(inputs, sample, "shared", own_columns=torch.zeros(3).long())
