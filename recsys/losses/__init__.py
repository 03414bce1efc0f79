"""Losses: functions of tensors, unreduced, in nats."""

from recsys.losses.effective_sample_size import effective_sample_size
from recsys.losses.exact_importance import exact_importance_weights
from recsys.losses.full_softmax import full_softmax_loss
from recsys.losses.grow_sample import GrownSample, grow_sample
from recsys.losses.in_batch_softmax import in_batch_softmax_loss
from recsys.losses.metropolis_hastings import ChainResult, independent_chain, transition_matrix
from recsys.losses.partition import PartitionEstimate, partition_estimate
from recsys.losses.sampled_softmax import sampled_softmax_loss

__all__ = [
    "ChainResult",
    "GrownSample",
    "PartitionEstimate",
    "effective_sample_size",
    "exact_importance_weights",
    "full_softmax_loss",
    "grow_sample",
    "in_batch_softmax_loss",
    "independent_chain",
    "partition_estimate",
    "sampled_softmax_loss",
    "transition_matrix",
]
