"""The Python names: the same work as the commands, with tables in and out."""

from recsys.api.bundles import load_bundle
from recsys.api.runs import TrainedRun, evaluate, train

__all__ = ["TrainedRun", "evaluate", "load_bundle", "train"]
