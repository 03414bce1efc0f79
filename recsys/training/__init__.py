"""The training loop, its objective, optimisers and checkpoints."""

from recsys.training import sampled_losses
from recsys.training.checkpoint import CheckpointStore, Position, Trainable
from recsys.training.device import MatrixProducts, choose_device
from recsys.training.fit import FitResult, FitSettings, TrainingRun, fit, train_epoch
from recsys.training.gradient_clipping import clip_gradients
from recsys.training.hard_negatives import RefreshedHardNegatives
from recsys.training.importance_objective import (
    ImportanceObjective,
    SampleGrowth,
    grow_each,
    grow_shared,
)
from recsys.training.known_positives import KnownPositives
from recsys.training.label_smoothing import smooth_catalogue_loss, smooth_sampled_loss
from recsys.training.learner import Learner
from recsys.training.model_step import ModelStep
from recsys.training.objective import CatalogueObjective, Objective
from recsys.training.operator_threads import choose_operator_threads
from recsys.training.optimizers import (
    TABLE_OPTIMIZERS,
    build_optimizers,
    needs_sparse_gradients,
    takes_weight_decay,
)
from recsys.training.outcome import log_outcome, scores_of
from recsys.training.reference_draws import ExactImportance, MetropolisHastings, MonteCarlo
from recsys.training.reference_objective import ReferenceObjective
from recsys.training.ridge_choice import RidgeJudge, RidgeSettings, choose_ridge
from recsys.training.rowwise_adagrad import RowwiseAdagrad
from recsys.training.run_folder import RunFolder
from recsys.training.sampled_losses import SampledLoss
from recsys.training.sampled_objective import SampledObjective
from recsys.training.schedules import Schedule, build_schedule
from recsys.training.update import update
from recsys.training.validation import Validator
from recsys.training.warm_start import (
    FreshStart,
    Start,
    StartingPoint,
    WarmStart,
    start_from_bundle,
)

__all__ = [
    "TABLE_OPTIMIZERS",
    "CatalogueObjective",
    "CheckpointStore",
    "ExactImportance",
    "FitResult",
    "FitSettings",
    "FreshStart",
    "ImportanceObjective",
    "KnownPositives",
    "Learner",
    "MatrixProducts",
    "MetropolisHastings",
    "ModelStep",
    "MonteCarlo",
    "Objective",
    "Position",
    "ReferenceObjective",
    "RefreshedHardNegatives",
    "RidgeJudge",
    "RidgeSettings",
    "RowwiseAdagrad",
    "RunFolder",
    "SampleGrowth",
    "SampledLoss",
    "SampledObjective",
    "Schedule",
    "Start",
    "StartingPoint",
    "Trainable",
    "TrainingRun",
    "Validator",
    "WarmStart",
    "build_optimizers",
    "build_schedule",
    "choose_device",
    "choose_operator_threads",
    "choose_ridge",
    "clip_gradients",
    "fit",
    "grow_each",
    "grow_shared",
    "log_outcome",
    "needs_sparse_gradients",
    "sampled_losses",
    "scores_of",
    "smooth_catalogue_loss",
    "smooth_sampled_loss",
    "start_from_bundle",
    "takes_weight_decay",
    "train_epoch",
    "update",
]
