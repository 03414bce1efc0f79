"""Settings of the sampler, popularity and streams groups: types and ranges."""

import math
from dataclasses import dataclass

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, one_of
from recsys.foundations import ConfigError

_BUCKETS_END = 2**31 - 1  # the hash functions are polynomials modulo this prime
MODES = ("with_replacement", "per_query", "deduplicated", "distinct", "independent")


@dataclass(kw_only=True)
class SamplerConfig:
    """What every sampler choice has."""


@dataclass(kw_only=True)
class ProposalConfig(SamplerConfig):
    """A distribution over the items, the same for every query, and how it is drawn from."""

    mode: str = MISSING

    def __post_init__(self) -> None:
        """Check the choice."""
        one_of("sampler.mode", self.mode, MODES)


@dataclass(kw_only=True)
class UniformConfig(ProposalConfig):
    """Every item alike."""


@dataclass(kw_only=True)
class LogUniformConfig(ProposalConfig):
    """Zipf's law by rank; ranks come from training counts."""


@dataclass(kw_only=True)
class PopularityConfig(ProposalConfig):
    """Items by training count ** alpha."""

    alpha: float = MISSING  # 0: uniform; 0.75: as in word2vec; 1: as often as in the log

    def __post_init__(self) -> None:
        """Check the range."""
        super().__post_init__()
        if not math.isfinite(self.alpha):
            raise ConfigError(f"sampler.alpha must be finite, got {self.alpha}.")


@dataclass(kw_only=True)
class LearnedUnigramConfig(ProposalConfig):
    """Items by counts that start at 1 and grow while training."""


@dataclass(kw_only=True)
class BigramConfig(SamplerConfig):
    """Items that follow the newest item of the user's history, each query its own draws."""

    unigram_share: float = MISSING  # of items drawn by popularity alone; above 0, at most 1

    def __post_init__(self) -> None:
        """Check the range."""
        if not 0 < self.unigram_share <= 1:
            raise ConfigError(
                f"sampler.unigram_share must be above 0 and at most 1, got {self.unigram_share}."
            )


def draws_by_query(sampler: SamplerConfig) -> bool:
    """Tell whether each query has draws of its own."""
    match sampler:
        case ProposalConfig(mode=mode):
            return mode == "per_query"
        case _:
            return True


@dataclass(kw_only=True)
class RateConfig:
    """What every choice of popularity has: the rate at which items come as positives."""


@dataclass(kw_only=True)
class ExactRateConfig(RateConfig):
    """Counts of the training part."""


@dataclass(kw_only=True)
class StreamingRateConfig(RateConfig):
    """Estimated while training, from the steps between an item's occurrences."""

    num_tables: int = MISSING
    num_buckets: int = MISSING  # a table
    step_size: float = MISSING  # weight of the newest gap; above 0, at most 1
    initial_gap: float | None = MISSING  # steps; null: num_items / batch_size

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_hashing(self.num_tables, self.num_buckets)
        if not 0 < self.step_size <= 1:
            raise ConfigError(
                f"popularity.step_size must be above 0 and at most 1, got {self.step_size}."
            )
        if self.initial_gap is not None:
            at_least("popularity.initial_gap", self.initial_gap, 1)


@dataclass(kw_only=True)
class CountMinRateConfig(RateConfig):
    """Counted while training, in a sketch of fixed size."""

    num_tables: int = MISSING
    num_buckets: int = MISSING  # a table
    initial_count: float = MISSING  # of every item; above 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_hashing(self.num_tables, self.num_buckets)
        above("popularity.initial_count", self.initial_count, 0)


def _check_hashing(num_tables: int, num_buckets: int) -> None:
    at_least("popularity.num_tables", num_tables, 1)
    at_least("popularity.num_buckets", num_buckets, 2)  # in one, all items have one rate
    if num_buckets >= _BUCKETS_END:
        raise ConfigError(
            f"popularity.num_buckets must be below {_BUCKETS_END}, got {num_buckets}."
        )


@dataclass(kw_only=True)
class InBatchStreamConfig:
    """The stream `in_batch`: the step's positives."""

    size: int = MISSING  # at most so many where trainer.examples are not events

    def __post_init__(self) -> None:
        """Check the range."""
        at_least("streams.in_batch.size", self.size, 1)


@dataclass(kw_only=True)
class MemoryStreamConfig:
    """The stream `memory`: vectors of earlier steps' positives."""

    size: int = MISSING
    max_age: int = MISSING  # steps

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("streams.memory.size", self.size, 1)
        at_least("streams.memory.max_age", self.max_age, 1)


@dataclass(kw_only=True)
class HardStreamConfig:
    """The stream `hard`: draws from the top of the model's own ranking."""

    num_sampled: int = MISSING  # draws a query
    num_top: int = MISSING  # length of the ranking
    refresh_steps: int = MISSING  # steps between two searches of the item vectors

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("streams.hard.num_sampled", self.num_sampled, 1)
        at_least("streams.hard.num_top", self.num_top, 1)
        at_least("streams.hard.refresh_steps", self.refresh_steps, 1)


@dataclass(kw_only=True)
class StreamsConfig:
    """The streams that only some losses name in `loss.streams`."""

    in_batch: InBatchStreamConfig = MISSING
    memory: MemoryStreamConfig = MISSING
    hard: HardStreamConfig = MISSING
