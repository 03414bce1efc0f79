"""Interactions, vocabulary, features, splits, and the prepared data set."""

from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.events import Events, history_ends
from recsys.data.feature_schema import FeatureOptions, FeatureSpec
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.raw import RawEntities, RawLog
from recsys.data.vocabulary import Vocabulary

__all__ = [
    "Entities",
    "Events",
    "FeatureOptions",
    "FeatureSchema",
    "FeatureSpec",
    "FeatureTable",
    "PreparedDataset",
    "RawEntities",
    "RawLog",
    "Vocabulary",
    "history_ends",
]
