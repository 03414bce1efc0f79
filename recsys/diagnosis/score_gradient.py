"""The gradient of the scores: the full softmax's, and what an estimator gives for it.

Dimensions: b rows of a block, S candidates a row, C candidates in the catalogue.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.diagnosis.candidates import Candidates, LossInputs
from recsys.diagnosis.estimator import Estimator


@dataclass(frozen=True)
class FullGradients:
    """Losses of a block of rows and their gradients.

    Attributes:
        losses: [b], in nats.
        gradients: [b, C]; of each row's own loss with respect to its scores.
    """

    losses: Tensor
    gradients: Tensor


@dataclass(frozen=True)
class EstimatedGradients:
    """Losses of a block of rows, and their gradients where they are not 0.

    Attributes:
        losses: [b], in nats.
        columns: [b, 1 + S], int64: the positive, then the candidates; repeats are separate terms.
        values: As `columns`; the terms of the gradient of the scores.
    """

    losses: Tensor
    columns: Tensor
    values: Tensor


def full_gradients(scores: Tensor, positive_rows: Tensor, temperature: float) -> FullGradients:
    """Compute the loss and gradient of the full softmax, ``(P - [positive]) / temperature``.

    Args:
        scores: [b, C].
        positive_rows: [b], int64.
        temperature: Divides the scores.
    """
    log_p = (scores / temperature).log_softmax(dim=1)
    gradients = log_p.exp()
    places = positive_rows[:, None]
    gradients.scatter_add_(1, places, torch.full(places.shape, -1.0))
    return FullGradients(-log_p.gather(1, places)[:, 0], gradients / temperature)


def estimated_gradients(
    estimator: Estimator,
    candidates: Candidates,
    scores: Tensor,
    positive_rows: Tensor,
    *,
    temperature: float,
) -> EstimatedGradients:
    """Compute the loss and gradient that an estimator gives a block of rows.

    The public loss gets the scores as biases, so that autograd gives the gradient of each.

    Args:
        estimator: Whose loss it is.
        candidates: Of the block's b rows.
        scores: [b, C].
        positive_rows: [b], int64.
        temperature: Divides the scores.
    """
    by_row = candidates.by_row(len(scores))
    positive = scores.gather(1, positive_rows[:, None])[:, 0].requires_grad_()  # [b]
    if candidates.is_shared:
        sampled = scores.index_select(1, candidates.rows).requires_grad_()  # [b, S]
    else:
        sampled = scores.gather(1, candidates.rows).requires_grad_()
    inputs = LossInputs.of_scores(positive, sampled, positive_rows, temperature)
    losses = estimator.loss(inputs, by_row)
    of_positive, of_sampled = torch.autograd.grad(losses.sum(), [positive, sampled])
    return EstimatedGradients(
        losses.detach(),
        torch.cat([positive_rows[:, None], by_row.rows], dim=1),
        torch.cat([of_positive[:, None], of_sampled], dim=1),
    )
