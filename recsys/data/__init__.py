"""Interactions, vocabulary, features, splits, and the prepared data set."""

from recsys.data.catalogue import infer_features
from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.events import Events, history_ends
from recsys.data.feature_schema import FeatureOptions, FeatureSpec
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.filters import FilterSettings
from recsys.data.prepare import prepare_dataset
from recsys.data.raw import RawEntities, RawLog
from recsys.data.splits import SplitSettings
from recsys.data.storage import read_prepared
from recsys.data.vocabulary import Vocabulary

__all__ = [
    "Entities",
    "Events",
    "FeatureOptions",
    "FeatureSchema",
    "FeatureSpec",
    "FeatureTable",
    "FilterSettings",
    "PreparedDataset",
    "RawEntities",
    "RawLog",
    "SplitSettings",
    "Vocabulary",
    "history_ends",
    "infer_features",
    "prepare_dataset",
    "read_prepared",
]
