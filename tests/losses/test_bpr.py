"""Pairwise ranking by hand, and what it is trained towards."""

import itertools

import torch
from torch.testing import assert_close

from recsys.losses import bpr_loss

LN_2 = torch.tensor([2.0], dtype=torch.float64).log()


def test_equals_the_value_worked_by_hand() -> None:
    # Scores 0 for the positive, 0 and ln 3 for the sampled: ln 2 and ln(1 + 3), their mean. The
    # third sampled candidate is the positive and leaves the mean, too.
    losses = bpr_loss(
        torch.ones(1, 1, dtype=torch.float64),
        torch.zeros(1, 1, dtype=torch.float64),
        torch.tensor([[1.0], [3.0], [1.0]], dtype=torch.float64).log(),
        positive_rows=torch.tensor([0]),
        sampled_rows=torch.tensor([1, 2, 0]),
        temperature=1.0,
    )
    assert_close(losses, 1.5 * LN_2)


def test_the_mean_over_a_sample_does_not_grow_with_it() -> None:
    rng = torch.Generator().manual_seed(0)
    query, positive, sampled = (torch.randn(n, 4, generator=rng) for n in (1, 1, 5))

    def compute(copies: int) -> torch.Tensor:
        return bpr_loss(
            query,
            positive,
            sampled.repeat(copies, 1),
            positive_rows=torch.tensor([0]),
            sampled_rows=torch.arange(1, 6).repeat(copies),
            temperature=0.5,
        )

    assert_close(compute(3), compute(1))


def test_is_trained_towards_log_p_over_the_draw_probability() -> None:
    # Pair (y, j) is met with chance P(y) q(j); at exp(score) = P / q, for one draw a query, the
    # sigmoids of (y, j) and (j, y) weigh the two chances against each other exactly.
    p = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    q = torch.tensor([0.1, 0.5, 0.15, 0.25], dtype=torch.float64)
    leaf = (p / q).log().requires_grad_()
    rows = torch.tensor([*itertools.product(range(4), repeat=2)])  # [16, 2]
    positives, sampled = rows.unbind(dim=1)
    losses = bpr_loss(
        torch.ones(16, 1, dtype=torch.float64),
        leaf[positives][:, None],
        leaf[sampled][:, None, None],
        positive_rows=positives,
        sampled_rows=sampled[:, None],
        temperature=1.0,
    )
    (gradient,) = torch.autograd.grad((losses * p[positives] * q[sampled]).sum(), [leaf])
    assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-14)
