"""Settings of the loss group: types and ranges."""

from dataclasses import dataclass

from omegaconf import MISSING

from recsys.config.ranges import at_least, one_of, share
from recsys.foundations import ConfigError

STREAMS = ("in_batch", "drawn", "memory", "hard")


@dataclass(kw_only=True)
class LossConfig:
    """What every loss choice has."""


@dataclass(kw_only=True)
class FullSoftmaxConfig(LossConfig):
    """The softmax over the whole catalogue: exact, and its cost grows with the catalogue."""

    label_smoothing: float = MISSING  # share of the target that goes to the whole catalogue
    candidates: str = MISSING

    def __post_init__(self) -> None:
        """Check the range."""
        share("loss.label_smoothing", self.label_smoothing)
        one_of("loss.candidates", self.candidates, ("all", "trained"))


@dataclass(kw_only=True)
class FullLogisticConfig(LossConfig):
    """One binary classification a candidate of the whole catalogue."""


@dataclass(kw_only=True)
class CorrectedLossConfig(LossConfig):
    """What the softmaxes over a sample of the catalogue have."""

    log_q: str = MISSING
    mask_accidental_hits: bool = MISSING
    mask_known_positives: bool = MISSING  # also the user's other training items leave the row
    label_smoothing: float = MISSING  # share of the target that goes to the whole catalogue

    def __post_init__(self) -> None:
        """Check the choices."""
        one_of("loss.log_q", self.log_q, ("standard", "refined", "none"))
        if self.log_q == "refined" and not self.mask_accidental_hits:
            raise ConfigError(
                "loss.log_q=refined takes the positive out of the sum, so that "
                "loss.mask_accidental_hits must be true, got false."
            )
        share("loss.label_smoothing", self.label_smoothing)
        if self.label_smoothing > 0 and self.log_q == "none":
            raise ConfigError(
                "loss.label_smoothing estimates a mean over the catalogue by the expected counts, "
                f"which loss.log_q=none leaves out; got {self.label_smoothing:g}."
            )


@dataclass(kw_only=True)
class InBatchConfig(CorrectedLossConfig):
    """The batch's own positives as candidates."""


@dataclass(kw_only=True)
class SampledSoftmaxConfig(CorrectedLossConfig):
    """Candidates drawn by the sampler group."""

    num_sampled: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        at_least("loss.num_sampled", self.num_sampled, 1)


@dataclass(kw_only=True)
class MixedConfig(SampledSoftmaxConfig):
    """Several streams of candidates, corrected by the sum of their expected counts."""

    streams: list[str] = MISSING

    def __post_init__(self) -> None:
        """Check the streams."""
        super().__post_init__()
        check_streams(self.streams)


def check_streams(streams: list[str]) -> None:
    """Check names, repeats, and that every candidate can be met."""
    if not streams:
        raise ConfigError("loss.streams must name at least one stream, got none.")
    for name in streams:
        one_of("loss.streams", name, STREAMS)
    if len(set(streams)) < len(streams):
        raise ConfigError(f"loss.streams must name each stream once, got {streams}.")
    if not {"in_batch", "drawn"} & set(streams):
        raise ConfigError(
            "loss.streams must hold in_batch or drawn, so that every item can be met, "
            f"got {streams}."
        )


@dataclass(kw_only=True)
class BinaryLossConfig(LossConfig):
    """What the losses by binary classification and by pairs have."""

    num_sampled: int = MISSING

    def __post_init__(self) -> None:
        """Check the range."""
        at_least("loss.num_sampled", self.num_sampled, 1)


@dataclass(kw_only=True)
class NegativeSamplingConfig(BinaryLossConfig):
    """One positive and num_sampled negatives as binary classifications, without a correction."""


@dataclass(kw_only=True)
class NoiseContrastiveConfig(BinaryLossConfig):
    """Noise-contrastive estimation: is it the data's or the noise's?"""


@dataclass(kw_only=True)
class SampledLogisticConfig(BinaryLossConfig):
    """The logistic loss over all candidates, from a sample."""


@dataclass(kw_only=True)
class BprConfig(BinaryLossConfig):
    """The positive above each sampled candidate, pair by pair."""


@dataclass(kw_only=True)
class ImportanceSamplingConfig(LossConfig):
    """Self-normalised importance sampling of the softmax gradient, fixed or adaptive."""

    num_sampled: int = MISSING  # draws of a block
    min_ess: float = MISSING  # effective sample size to reach; 0: one block, fixed
    max_samples: int = MISSING  # draws after which a row takes the full softmax
    ess_quantile: float = MISSING  # share of the batch that may stay below, with shared draws

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("loss.num_sampled", self.num_sampled, 1)
        at_least("loss.min_ess", self.min_ess, 0)
        at_least("loss.max_samples", self.max_samples, self.num_sampled)
        share("loss.ess_quantile", self.ess_quantile)
        if self.min_ess > self.max_samples:
            raise ConfigError(
                f"loss.min_ess must be at most loss.max_samples={self.max_samples}, "
                f"got {self.min_ess:g}: a sample is never worth more than its size."
            )


@dataclass(kw_only=True)
class MonteCarloConfig(LossConfig):
    """Draws from the model's own softmax: unbiased, as dear as the full softmax."""

    num_sampled: int = MISSING  # draws a query

    def __post_init__(self) -> None:
        """Check the range."""
        at_least("loss.num_sampled", self.num_sampled, 1)


@dataclass(kw_only=True)
class ExactImportanceConfig(MonteCarloConfig):
    """Importance sampling with the exact P, not self-normalised: unbiased, as dear."""


@dataclass(kw_only=True)
class MetropolisHastingsConfig(MonteCarloConfig):
    """An independence chain a query over proposals of the sampler group."""

    burn_in: int = MISSING  # first states of a chain, which do not count

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        at_least("loss.burn_in", self.burn_in, 0)
        if self.burn_in >= self.num_sampled:
            raise ConfigError(
                f"loss.burn_in must be below loss.num_sampled={self.num_sampled}, "
                f"got {self.burn_in}."
            )
