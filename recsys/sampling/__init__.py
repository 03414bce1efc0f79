"""Samplers: they draw candidates and own the log Q of what they draw."""

from recsys.sampling.alias_table import AliasTable
from recsys.sampling.bigram import BigramProposal
from recsys.sampling.bigram_sampler import BigramSampler
from recsys.sampling.catalogue_sum import sum_over_catalogue
from recsys.sampling.count_min_popularity import CountMinPopularity
from recsys.sampling.deduplicated import DeduplicatedSampler
from recsys.sampling.distinct import DistinctSampler, log_distinct_expected_count
from recsys.sampling.draw import (
    Draw,
    DrawRequest,
    Sample,
    Sampler,
    StoredVectors,
    check_no_state,
    check_rows,
    draw,
)
from recsys.sampling.fenwick_tree import FenwickTree
from recsys.sampling.hard_negatives import HardNegativeSampler
from recsys.sampling.hashing import Hashing, SeededHashing, TableHashing
from recsys.sampling.in_batch import InBatchSampler
from recsys.sampling.inclusion import (
    inclusion_probability,
    inclusion_probability_without_replacement,
    log_inclusion_probability,
    log_poisson_inclusion_probability,
)
from recsys.sampling.independent import IndependentSampler
from recsys.sampling.learned_unigram import LearnedUnigramProposal
from recsys.sampling.log_uniform import LogUniformProposal
from recsys.sampling.memory import MemorySampler
from recsys.sampling.merge_repeats import merge_repeats
from recsys.sampling.mixed import MixedSampler
from recsys.sampling.per_query import PerQuerySampler
from recsys.sampling.popularity import popularity_probabilities
from recsys.sampling.popularity_estimate import ExactPopularity, Popularity
from recsys.sampling.proposal import PopularityProposal, Proposal, UniformProposal
from recsys.sampling.streaming_popularity import StreamingPopularity
from recsys.sampling.with_replacement import WithReplacementSampler

__all__ = [
    "AliasTable",
    "BigramProposal",
    "BigramSampler",
    "CountMinPopularity",
    "DeduplicatedSampler",
    "DistinctSampler",
    "Draw",
    "DrawRequest",
    "ExactPopularity",
    "FenwickTree",
    "HardNegativeSampler",
    "Hashing",
    "InBatchSampler",
    "IndependentSampler",
    "LearnedUnigramProposal",
    "LogUniformProposal",
    "MemorySampler",
    "MixedSampler",
    "PerQuerySampler",
    "Popularity",
    "PopularityProposal",
    "Proposal",
    "Sample",
    "Sampler",
    "SeededHashing",
    "StoredVectors",
    "StreamingPopularity",
    "TableHashing",
    "UniformProposal",
    "WithReplacementSampler",
    "check_no_state",
    "check_rows",
    "draw",
    "inclusion_probability",
    "inclusion_probability_without_replacement",
    "log_distinct_expected_count",
    "log_inclusion_probability",
    "log_poisson_inclusion_probability",
    "merge_repeats",
    "popularity_probabilities",
    "sum_over_catalogue",
]
