"""How biased and how noisy each estimator of the softmax is, on the user's data and model."""

from recsys.diagnosis.advice import Advice, advise
from recsys.diagnosis.batch_errors import BatchError, full_gradient, measure_step
from recsys.diagnosis.batch_spread import BatchSpread
from recsys.diagnosis.candidates import Candidates, LossInputs
from recsys.diagnosis.diagnose import DiagnosisPlan, diagnose
from recsys.diagnosis.estimator import Estimator, FullSoftmax, InBatch, Sampled
from recsys.diagnosis.kind import AIMS, FAMILIES, Kind, Material
from recsys.diagnosis.measurement import GradientError, Measurement, StepError, summarize
from recsys.diagnosis.positives import ChosenPositives, choose_positives, equal_quotas
from recsys.diagnosis.recommended import RecommendedPopularity, recommend_by_popularity
from recsys.diagnosis.registry import KINDS
from recsys.diagnosis.result import Diagnosis
from recsys.diagnosis.results import write_diagnosis, write_diagnosis_plots
from recsys.diagnosis.row_errors import GRADIENTS, RowErrors, measure_rows
from recsys.diagnosis.subject import BatchPeers, DrawnPeers, Peers, Subject
from recsys.diagnosis.subjects import Towers, subject_of_positives, subjects_of_batches
from recsys.diagnosis.table import diagnosis_table, print_diagnosis

__all__ = [
    "AIMS",
    "FAMILIES",
    "GRADIENTS",
    "KINDS",
    "Advice",
    "BatchError",
    "BatchPeers",
    "BatchSpread",
    "Candidates",
    "ChosenPositives",
    "Diagnosis",
    "DiagnosisPlan",
    "DrawnPeers",
    "Estimator",
    "FullSoftmax",
    "GradientError",
    "InBatch",
    "Kind",
    "LossInputs",
    "Material",
    "Measurement",
    "Peers",
    "RecommendedPopularity",
    "RowErrors",
    "Sampled",
    "StepError",
    "Subject",
    "Towers",
    "advise",
    "choose_positives",
    "diagnose",
    "diagnosis_table",
    "equal_quotas",
    "full_gradient",
    "measure_rows",
    "measure_step",
    "print_diagnosis",
    "recommend_by_popularity",
    "subject_of_positives",
    "subjects_of_batches",
    "summarize",
    "write_diagnosis",
    "write_diagnosis_plots",
]
