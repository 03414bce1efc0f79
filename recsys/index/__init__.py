"""Indexes over candidate vectors: exact search, FAISS, and the saved form."""

from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.hits import Hits, Index
from recsys.index.own_items import OwnItems, ScoredCandidates, Search, search_with_bonus
from recsys.index.popularity_dial import LARGEST_ALPHA, PopularityDial, check_alpha
from recsys.index.saved import read_index, read_vectors, write_index, write_vectors
from recsys.index.settings import IndexPlan, IndexSettings, plan_index

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
    "check_alpha",
    "plan_index",
    "read_index",
    "read_vectors",
    "search_with_bonus",
    "write_index",
    "write_vectors",
]
