"""Records of runs: the Tracker protocol, a tracker that keeps nothing, and MLflow."""

from recsys.tracking.mlflow_tracker import MlflowTracker, mlflow_tracker
from recsys.tracking.names import flatten_settings, legal_metric_name
from recsys.tracking.tracker import NullTracker, Tracker, null_tracker

__all__ = [
    "MlflowTracker",
    "NullTracker",
    "Tracker",
    "flatten_settings",
    "legal_metric_name",
    "mlflow_tracker",
    "null_tracker",
]
