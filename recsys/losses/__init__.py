"""Losses: functions of tensors, unreduced, in nats."""

from recsys.losses.full_softmax import full_softmax_loss
from recsys.losses.in_batch_softmax import in_batch_softmax_loss
from recsys.losses.sampled_softmax import sampled_softmax_loss

__all__ = ["full_softmax_loss", "in_batch_softmax_loss", "sampled_softmax_loss"]
