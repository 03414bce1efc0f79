"""Functions of ranked lists, relevant rows and vectors: a value a query, intervals of the means."""

from recsys.metrics.bootstrap import (
    Interval,
    bootstrap_interval,
    bootstrap_ratio_interval,
    paired_difference_interval,
)
from recsys.metrics.catalogue import coverage_at_k, mean_popularity_at_k, overlap_at_k
from recsys.metrics.likelihood import log_likelihood, perplexity
from recsys.metrics.popularity import log_popularity, popularity_percentiles
from recsys.metrics.ranking import (
    capped_recall_at_k,
    hit_rate_at_k,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    top_k,
)
from recsys.metrics.relevance import distinct, num_relevant_of, ranks_of, relevance_of
from recsys.metrics.ties import (
    TiedRanks,
    expected_over_ties,
    pessimistic_hits,
    tied_at_k,
    tied_ranks,
)

__all__ = [
    "Interval",
    "TiedRanks",
    "bootstrap_interval",
    "bootstrap_ratio_interval",
    "capped_recall_at_k",
    "coverage_at_k",
    "distinct",
    "expected_over_ties",
    "hit_rate_at_k",
    "log_likelihood",
    "log_popularity",
    "map_at_k",
    "mean_popularity_at_k",
    "mrr_at_k",
    "ndcg_at_k",
    "num_relevant_of",
    "overlap_at_k",
    "paired_difference_interval",
    "perplexity",
    "pessimistic_hits",
    "popularity_percentiles",
    "precision_at_k",
    "ranks_of",
    "recall_at_k",
    "relevance_of",
    "tied_at_k",
    "tied_ranks",
    "top_k",
]
