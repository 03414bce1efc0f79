"""Settings of the benchmark `language`: types and ranges."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, between, one_of, share
from recsys.config.schema_data import PATH
from recsys.foundations import ConfigError

ESTIMATORS = (
    "full_softmax",
    "unigram_fixed",
    "unigram_adaptive",
    "unigram_small",
    "bigram_fixed",
    "bigram_adaptive",
    "sampled_softmax",
)


@dataclass(kw_only=True)
class LanguageBenchmarkConfig:
    """Next-word prediction by the full softmax and by its estimators."""

    interactions: str | None = field(default=MISSING, metadata=PATH)  # the log
    validation_share: float = MISSING  # of the sentences, before the test part
    test_share: float = MISSING  # of the sentences, the last ones
    min_count: int = MISSING  # words that training has less often share one row; 1: none does
    context: int = MISSING  # earlier words of the sentence that are read
    validation_examples: int | None = MISSING  # at most so many are scored; null: all
    estimators: list[str] = MISSING
    epochs: int = MISSING
    batch_size: int = MISSING
    embedding_dim: int = MISSING
    decay: float = MISSING  # weight of a word of the context against the next newer one
    exponent: float = MISSING  # the sum is divided by (sum of weights) ** exponent
    init_std: float = MISSING
    learning_rate: float = MISSING
    initial_accumulator: float = MISSING  # of every row's sum of squared gradients
    warmup_share: float = MISSING  # share of all steps; then the rate falls to 0
    num_sampled: int = MISSING  # unigram_fixed and sampled_softmax
    small_sampled: int = MISSING  # unigram_small
    unigram_block: int = MISSING  # unigram_adaptive, as the next three
    unigram_min_ess: float = MISSING
    unigram_max_samples: int = MISSING
    ess_quantile: float = MISSING  # share of a batch's rows that may stay below
    bigram_sampled: int = MISSING  # bigram_fixed, of each row
    bigram_block: int = MISSING  # bigram_adaptive, as the next two
    bigram_min_ess: float = MISSING
    bigram_max_samples: int = MISSING
    unigram_share: float = MISSING  # of the bigram; above 0, at most 1

    def __post_init__(self) -> None:
        """Check the ranges."""
        between("language.validation_share", self.validation_share, 0, 1)
        between("language.test_share", self.test_share, 0, 1)
        total = self.validation_share + self.test_share
        if not total < 1:
            raise ConfigError(
                f"language.validation_share + language.test_share must be below 1, got {total:g}."
            )
        for key in _COUNTS:
            at_least(f"language.{key}", getattr(self, key), 1)
        if self.validation_examples is not None:
            at_least("language.validation_examples", self.validation_examples, 1)
        at_least("language.initial_accumulator", self.initial_accumulator, 0)
        for key in ("init_std", "learning_rate"):
            above(f"language.{key}", getattr(self, key), 0)
        for name in ("unigram", "bigram"):
            self._check_growth(name)
        for key in ("warmup_share", "ess_quantile"):
            share(f"language.{key}", getattr(self, key))
        self._check_weights()
        self._check_estimators()

    def _check_growth(self, name: str) -> None:
        """Check that the adaptive sample of a proposal can reach its size."""
        block, most, size = (
            getattr(self, f"{name}_{key}") for key in ("block", "max_samples", "min_ess")
        )
        at_least(f"language.{name}_max_samples", most, block)
        at_least(f"language.{name}_min_ess", size, 0)
        if size > most:
            raise ConfigError(
                f"language.{name}_min_ess must be at most language.{name}_max_samples={most}, "
                f"got {size:g}: a sample is never worth more than its size."
            )

    def _check_weights(self) -> None:
        for key in ("decay", "unigram_share"):
            value = getattr(self, key)
            if not 0 < value <= 1:
                raise ConfigError(f"language.{key} must be above 0 and at most 1, got {value}.")
        if not 0 <= self.exponent <= 1:
            raise ConfigError(f"language.exponent must be from 0 to 1, got {self.exponent}.")

    def _check_estimators(self) -> None:
        for name in self.estimators:
            one_of("language.estimators", name, ESTIMATORS)
        if not self.estimators or len(set(self.estimators)) < len(self.estimators):
            raise ConfigError(
                f"language.estimators must name one or more, each once, got {self.estimators}."
            )


_COUNTS = (
    "min_count",
    "context",
    "epochs",
    "batch_size",
    "embedding_dim",
    "num_sampled",
    "small_sampled",
    "unigram_block",
    "unigram_max_samples",
    "bigram_sampled",
    "bigram_block",
    "bigram_max_samples",
)
