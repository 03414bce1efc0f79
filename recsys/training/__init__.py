"""The training loop, its objective, optimisers and checkpoints."""

from recsys.training.checkpoint import CheckpointStore, Position, Trainable
from recsys.training.device import choose_device
from recsys.training.fit import FitResult, FitSettings, TrainingRun, fit
from recsys.training.gradient_clipping import clip_gradients
from recsys.training.model_step import ModelStep
from recsys.training.objective import FullSoftmaxObjective, Objective, SampledObjective
from recsys.training.optimizers import (
    TABLE_OPTIMIZERS,
    build_optimizers,
    needs_sparse_gradients,
    takes_weight_decay,
)
from recsys.training.outcome import log_outcome, scores_of
from recsys.training.rowwise_adagrad import RowwiseAdagrad
from recsys.training.run_folder import RunFolder
from recsys.training.schedules import Schedule, build_schedule
from recsys.training.validation import Validator

__all__ = [
    "TABLE_OPTIMIZERS",
    "CheckpointStore",
    "FitResult",
    "FitSettings",
    "FullSoftmaxObjective",
    "ModelStep",
    "Objective",
    "Position",
    "RowwiseAdagrad",
    "RunFolder",
    "SampledObjective",
    "Schedule",
    "Trainable",
    "TrainingRun",
    "Validator",
    "build_optimizers",
    "build_schedule",
    "choose_device",
    "clip_gradients",
    "fit",
    "log_outcome",
    "needs_sparse_gradients",
    "scores_of",
    "takes_weight_decay",
]
