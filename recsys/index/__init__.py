"""Indexes over candidate vectors: exact search, FAISS, and the saved form."""

from recsys.index.asked import TuningQueries
from recsys.index.centroids import find_centroids
from recsys.index.changed_index import ChangedExactIndex, ChangedIndex
from recsys.index.changed_index_vectors import ChangedVectors
from recsys.index.changes import Changes
from recsys.index.changes_saved import (
    CHANGES_FILES,
    read_changes,
    write_changes,
)
from recsys.index.dial import Setting, find_setting
from recsys.index.estimate import BuildEstimate, check_memory, estimate_build, estimate_kinds
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.families import index_bytes
from recsys.index.fold import fold, withdrawal_alone
from recsys.index.fold_recall import MeasuredRecall, measure_recall, needs_retraining
from recsys.index.hits import Hits, Index
from recsys.index.main_index import (
    INDEX_FORMS,
    MainIndex,
    build_main,
    read_main,
    write_main,
)
from recsys.index.own_items import OwnItems, ScoredCandidates, Search, search_with_bonus
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.popularity_dial import LARGEST_ALPHA, PopularityDial, check_alpha
from recsys.index.rounding import norms_of
from recsys.index.saved import (
    read_index,
    read_vectors,
    write_index,
    write_vector_blocks,
    write_vectors,
)
from recsys.index.scann_index import ScannIndex
from recsys.index.scann_library import check_scann
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings
from recsys.index.stored_index import ExactSearch, StoredIndex, Vectors
from recsys.index.tuning import tune_index
from recsys.index.tuning_result import Trial, Tuning, TuningTarget

__all__ = [
    "CHANGES_FILES",
    "GRAPH_KINDS",
    "INDEX_FORMS",
    "LARGEST_ALPHA",
    "LIST_KINDS",
    "BuildEstimate",
    "ChangedExactIndex",
    "ChangedIndex",
    "ChangedVectors",
    "Changes",
    "ExactIndex",
    "ExactSearch",
    "FaissIndex",
    "Hits",
    "Index",
    "IndexPlan",
    "IndexSettings",
    "MainIndex",
    "MeasuredRecall",
    "OwnItems",
    "PopularityDial",
    "ScannIndex",
    "ScoredCandidates",
    "Search",
    "Setting",
    "StoredIndex",
    "Trial",
    "Tuning",
    "TuningQueries",
    "TuningTarget",
    "Vectors",
    "build_main",
    "check_alpha",
    "check_memory",
    "check_scann",
    "estimate_build",
    "estimate_kinds",
    "find_centroids",
    "find_setting",
    "fold",
    "index_bytes",
    "measure_recall",
    "needs_retraining",
    "norms_of",
    "plan_index",
    "read_changes",
    "read_index",
    "read_main",
    "read_vectors",
    "search_with_bonus",
    "tune_index",
    "withdrawal_alone",
    "write_changes",
    "write_index",
    "write_main",
    "write_vector_blocks",
    "write_vectors",
]
