"""Softmax losses whose target is smoothed: a part of it goes to the whole catalogue."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from recsys.losses import sampled_label_smoothing_term
from recsys.training.objective import CatalogueLoss
from recsys.training.sampled_losses import SampledLoss, SampledTerms

SmoothableLoss = Callable[..., Tensor]
"""A `CatalogueLoss` that takes `label_smoothing` too."""


def smooth_catalogue_loss(loss: SmoothableLoss, smoothing: float) -> CatalogueLoss:
    """Give a loss over the whole catalogue with a smoothed target.

    The catalogue is what the loss is given: over the trained candidates alone, the smoothed part of
    the target goes to these alone, so that nothing is taught of the others.

    Args:
        loss: `full_softmax_loss`.
        smoothing: The part of the target that goes to the catalogue, in [0, 1).
    """
    return partial(loss, label_smoothing=smoothing)


def smooth_sampled_loss(loss: SampledLoss, smoothing: float, num_candidates: int) -> SampledLoss:
    """Give a corrected softmax over a sample with a smoothed target.

    Args:
        loss: `standard_softmax` or `refined_softmax`.
        smoothing: The part of the target that goes to the catalogue, in [0, 1).
        num_candidates: Candidates in the catalogue.
    """
    if smoothing == 0:
        return loss

    def smoothed(terms: SampledTerms) -> Tensor:
        return loss(terms) + sampled_label_smoothing_term(
            terms.query_embeddings,
            terms.positive_embeddings,
            terms.sampled_embeddings,
            sampled_log_q=terms.sampled_log_q,
            num_candidates=num_candidates,
            temperature=terms.temperature,
            smoothing=smoothing,
            own_columns=terms.own_columns,
            drawn_mask=terms.drawn_mask,
        )

    return smoothed
