"""Indexes over candidate vectors: exact search, FAISS, and the saved form."""

from recsys.index.asked import TuningQueries
from recsys.index.centroids import find_centroids
from recsys.index.dial import Setting, find_setting
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.families import index_bytes
from recsys.index.hits import Hits, Index
from recsys.index.own_items import OwnItems, ScoredCandidates, Search, search_with_bonus
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.popularity_dial import LARGEST_ALPHA, PopularityDial, check_alpha
from recsys.index.saved import read_index, read_vectors, write_index, write_vectors
from recsys.index.settings import IndexSettings
from recsys.index.tuning import tune_index
from recsys.index.tuning_result import Trial, Tuning, TuningTarget

__all__ = [
    "LARGEST_ALPHA",
    "ExactIndex",
    "FaissIndex",
    "Hits",
    "Index",
    "IndexPlan",
    "IndexSettings",
    "OwnItems",
    "PopularityDial",
    "ScoredCandidates",
    "Search",
    "Setting",
    "Trial",
    "Tuning",
    "TuningQueries",
    "TuningTarget",
    "check_alpha",
    "find_centroids",
    "find_setting",
    "index_bytes",
    "plan_index",
    "read_index",
    "read_vectors",
    "search_with_bonus",
    "tune_index",
    "write_index",
    "write_vectors",
]
