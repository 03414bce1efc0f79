"""Interactions, vocabulary, features, splits, and the prepared data set."""

from recsys.data.catalogue import infer_features
from recsys.data.clocks import read_moments
from recsys.data.consecutive_pairs import consecutive_pairs
from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.entities import entities_from_table, read_entities
from recsys.data.entity_files import read_entities_file, write_entities
from recsys.data.event_batches import EventBatches
from recsys.data.event_files import map_events, write_events
from recsys.data.events import Events
from recsys.data.feature_columns import as_lists, as_text, is_list, is_text, whole_column
from recsys.data.feature_schema import FeatureOptions, FeatureSpec
from recsys.data.feature_tokens import (
    TOKEN_KINDS,
    count_tokens,
    inverse_frequencies,
    row_lengths,
    unit_rows,
)
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.filters import FilterSettings
from recsys.data.hashing import spread_bits
from recsys.data.history_ranges import HistoryRanges
from recsys.data.id_pairs import id_pairs_from_table, read_id_pairs
from recsys.data.joined_parts import check_joins, count_validation, join_validation
from recsys.data.log_files import LogFiles
from recsys.data.log_options import ColumnNames, LogOptions
from recsys.data.memory_budget import LEAST_MEMORY_GB
from recsys.data.ml100k import Ml100k, fetch_ml100k
from recsys.data.prefetched_batches import PrefetchedBatches
from recsys.data.prepare import prepare_dataset
from recsys.data.profile_batches import ProfileBatches
from recsys.data.raw import LogSource, RawEntities, RawLog
from recsys.data.reading import (
    interactions_from_table,
    open_interactions,
    read_interactions,
)
from recsys.data.reading_csv import marked_encoding
from recsys.data.sequence_batches import SequenceBatches
from recsys.data.shuffled_rows import ShuffledRows
from recsys.data.sources import find_sources
from recsys.data.split_settings import SplitSettings
from recsys.data.storage import FORMAT_VERSION as DATASET_FORMAT
from recsys.data.storage import read_prepared
from recsys.data.synthetic import SyntheticData, make_synthetic
from recsys.data.synthetic_vectors import clustered_blocks, make_clustered_vectors
from recsys.data.table_format import TableFormat
from recsys.data.training_batch import (
    NO_TIME,
    BatchStream,
    HistoryPlaces,
    TrainingBatch,
    TrainingBatches,
)
from recsys.data.user_histories import join_histories
from recsys.data.user_weights import weigh_by_user
from recsys.data.vocabulary import Vocabulary

__all__ = [
    "DATASET_FORMAT",
    "LEAST_MEMORY_GB",
    "NO_TIME",
    "TOKEN_KINDS",
    "BatchStream",
    "ColumnNames",
    "Entities",
    "EventBatches",
    "Events",
    "FeatureOptions",
    "FeatureSchema",
    "FeatureSpec",
    "FeatureTable",
    "FilterSettings",
    "HistoryPlaces",
    "HistoryRanges",
    "LogFiles",
    "LogOptions",
    "LogSource",
    "Ml100k",
    "PrefetchedBatches",
    "PreparedDataset",
    "ProfileBatches",
    "RawEntities",
    "RawLog",
    "SequenceBatches",
    "ShuffledRows",
    "SplitSettings",
    "SyntheticData",
    "TableFormat",
    "TrainingBatch",
    "TrainingBatches",
    "Vocabulary",
    "as_lists",
    "as_text",
    "check_joins",
    "clustered_blocks",
    "consecutive_pairs",
    "count_tokens",
    "count_validation",
    "entities_from_table",
    "fetch_ml100k",
    "find_sources",
    "id_pairs_from_table",
    "infer_features",
    "interactions_from_table",
    "inverse_frequencies",
    "is_list",
    "is_text",
    "join_histories",
    "join_validation",
    "make_clustered_vectors",
    "make_synthetic",
    "map_events",
    "marked_encoding",
    "open_interactions",
    "prepare_dataset",
    "read_entities",
    "read_entities_file",
    "read_id_pairs",
    "read_interactions",
    "read_moments",
    "read_prepared",
    "row_lengths",
    "spread_bits",
    "unit_rows",
    "weigh_by_user",
    "whole_column",
    "write_entities",
    "write_events",
]
