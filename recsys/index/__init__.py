"""Indexes over candidate vectors: exact search, FAISS, and the saved form."""

from recsys.index.dial import find_setting
from recsys.index.estimate import BuildEstimate, check_memory, estimate_build, estimate_kinds
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.families import index_bytes
from recsys.index.hits import Hits, Index
from recsys.index.own_items import OwnItems, ScoredCandidates, Search, search_with_bonus
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.popularity_dial import LARGEST_ALPHA, PopularityDial, check_alpha
from recsys.index.saved import read_index, read_vectors, write_index, write_vectors
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings
from recsys.index.tuning import tune_index
from recsys.index.tuning_result import Trial, Tuning, TuningTarget

__all__ = [
    "GRAPH_KINDS",
    "LARGEST_ALPHA",
    "LIST_KINDS",
    "BuildEstimate",
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
    "Trial",
    "Tuning",
    "TuningTarget",
    "check_alpha",
    "check_memory",
    "estimate_build",
    "estimate_kinds",
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
