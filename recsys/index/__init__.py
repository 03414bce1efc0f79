"""Indexes over candidate vectors: exact search, FAISS, and the saved form."""

from recsys.index.dial import find_setting
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.hits import Hits, Index
from recsys.index.own_items import OwnItems, ScoredCandidates, Search, search_with_bonus
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.popularity_dial import LARGEST_ALPHA, PopularityDial, check_alpha
from recsys.index.saved import read_index, read_vectors, write_index, write_vectors
from recsys.index.scann_index import ScannIndex
from recsys.index.scann_library import check_scann
from recsys.index.settings import IndexSettings
from recsys.index.stored_index import (
    INDEX_FORMS,
    StoredIndex,
    build_stored,
    read_stored,
    write_stored,
)
from recsys.index.tuning import tune_index
from recsys.index.tuning_result import Trial, Tuning, TuningTarget

__all__ = [
    "INDEX_FORMS",
    "LARGEST_ALPHA",
    "ExactIndex",
    "FaissIndex",
    "Hits",
    "Index",
    "IndexPlan",
    "IndexSettings",
    "OwnItems",
    "PopularityDial",
    "ScannIndex",
    "ScoredCandidates",
    "Search",
    "StoredIndex",
    "Trial",
    "Tuning",
    "TuningTarget",
    "build_stored",
    "check_alpha",
    "check_scann",
    "find_setting",
    "plan_index",
    "read_index",
    "read_stored",
    "read_vectors",
    "search_with_bonus",
    "tune_index",
    "write_index",
    "write_stored",
    "write_vectors",
]
