"""Samplers: they draw candidates and own the log Q of what they draw."""

from recsys.sampling.alias_table import AliasTable
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
from recsys.sampling.in_batch import InBatchSampler
from recsys.sampling.inclusion import (
    inclusion_probability,
    inclusion_probability_without_replacement,
)
from recsys.sampling.mixed import MixedSampler
from recsys.sampling.popularity import popularity_probabilities
from recsys.sampling.popularity_estimate import ExactPopularity, Popularity
from recsys.sampling.proposal import PopularityProposal, Proposal, UniformProposal
from recsys.sampling.with_replacement import WithReplacementSampler

__all__ = [
    "AliasTable",
    "Draw",
    "DrawRequest",
    "ExactPopularity",
    "InBatchSampler",
    "MixedSampler",
    "Popularity",
    "PopularityProposal",
    "Proposal",
    "Sample",
    "Sampler",
    "StoredVectors",
    "UniformProposal",
    "WithReplacementSampler",
    "check_no_state",
    "check_rows",
    "draw",
    "inclusion_probability",
    "inclusion_probability_without_replacement",
    "popularity_probabilities",
]
