"""Losses: functions of tensors, unreduced, in nats."""

from recsys.losses.bpr import bpr_loss
from recsys.losses.effective_sample_size import effective_sample_size
from recsys.losses.exact_importance import exact_importance_weights
from recsys.losses.full_logistic import full_logistic_loss
from recsys.losses.full_softmax import full_softmax_loss
from recsys.losses.gathered_scores import gathered_scores
from recsys.losses.grow_row_samples import GrownRows, grow_row_samples
from recsys.losses.grow_sample import GrownSample, grow_sample
from recsys.losses.importance_sampling import (
    importance_log_weights,
    importance_sampling_loss,
    importance_weights,
)
from recsys.losses.in_batch_softmax import in_batch_softmax_loss
from recsys.losses.label_smoothing import sampled_label_smoothing_term
from recsys.losses.metropolis_hastings import ChainResult, independent_chain, transition_matrix
from recsys.losses.monte_carlo import monte_carlo_loss
from recsys.losses.negative_sampling import negative_sampling_loss
from recsys.losses.noise_contrastive import noise_contrastive_loss
from recsys.losses.partition import PartitionEstimate, partition_estimate
from recsys.losses.placed_embeddings import PlacedEmbeddings
from recsys.losses.refined_softmax import (
    RefinedTerms,
    refined_softmax_loss,
    refined_softmax_terms,
)
from recsys.losses.sample_logits import SampledEmbeddings
from recsys.losses.sampled_logistic import sampled_logistic_loss
from recsys.losses.sampled_softmax import sampled_softmax_loss

__all__ = [
    "ChainResult",
    "GrownRows",
    "GrownSample",
    "PartitionEstimate",
    "PlacedEmbeddings",
    "RefinedTerms",
    "SampledEmbeddings",
    "bpr_loss",
    "effective_sample_size",
    "exact_importance_weights",
    "full_logistic_loss",
    "full_softmax_loss",
    "gathered_scores",
    "grow_row_samples",
    "grow_sample",
    "importance_log_weights",
    "importance_sampling_loss",
    "importance_weights",
    "in_batch_softmax_loss",
    "independent_chain",
    "monte_carlo_loss",
    "negative_sampling_loss",
    "noise_contrastive_loss",
    "partition_estimate",
    "refined_softmax_loss",
    "refined_softmax_terms",
    "sampled_label_smoothing_term",
    "sampled_logistic_loss",
    "sampled_softmax_loss",
    "transition_matrix",
]
