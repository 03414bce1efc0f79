"""Samplers: they draw candidates and own the log Q of what they draw."""

from recsys.sampling.alias_table import AliasTable
from recsys.sampling.draw import Draw, Sampler, Stream, check_no_state
from recsys.sampling.in_batch import InBatchSampler
from recsys.sampling.inclusion import (
    inclusion_probability,
    inclusion_probability_without_replacement,
)
from recsys.sampling.mixed import MixedSampler
from recsys.sampling.popularity import PopularitySampler, popularity_probabilities
from recsys.sampling.uniform import UniformSampler

__all__ = [
    "AliasTable",
    "Draw",
    "InBatchSampler",
    "MixedSampler",
    "PopularitySampler",
    "Sampler",
    "Stream",
    "UniformSampler",
    "check_no_state",
    "inclusion_probability",
    "inclusion_probability_without_replacement",
    "popularity_probabilities",
]
