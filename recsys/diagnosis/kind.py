"""What is known of an estimator before it is built, and what it is built of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from recsys.diagnosis.estimator import Estimator

FAMILIES = (
    "Full softmax",
    "Sampled softmax, standard form",
    "Sampled softmax, other forms",
    "The batch's own positives",
    "Importance sampling",
    "Draws from the model",
    "Sigmoid and ranking losses",
)
# What the loss is trained towards -> its sign in tables, and in words.
AIMS = {
    "softmax": ("", ""),
    "uncorrected": ("*", "no log Q: trained to the end, its scores are log P - log Q"),
    "classification": (
        "†",
        "binary classifications, towards log P or its log odds: another gradient",
    ),
    "other": ("‡", "does not aim at the softmax"),
}


@dataclass(frozen=True)
class Material:
    """What estimators are built of.

    Attributes:
        counts: [C], training events; not all 0.
        pairs: Previous and next items of the training part, [N] each, for the bigram.
        batch_size: Positives of a training batch.
        unigram_share: Of the bigram.
        ess_quantile: Of the adaptive sample.
        burn_in_share: Of the chain.
        max_exact_items: Estimators that visit the whole catalogue are left out above it.
    """

    counts: NDArray[Any]
    pairs: tuple[NDArray[Any], NDArray[Any]]
    batch_size: int
    unigram_share: float
    ess_quantile: float
    burn_in_share: float
    max_exact_items: int

    @property
    def num_items(self) -> int:
        """Give C."""
        return len(self.counts)


def sizes_as_set(sample_sizes: Sequence[int], _: Material) -> tuple[int, ...]:
    """Give the sample sizes that are set, rising, each once."""
    return tuple(sorted(set(sample_sizes)))


def any_size(_: int, __: Material) -> bool:
    """Tell that a step can have every sample size."""
    return True


@dataclass(frozen=True)
class Kind:
    """One estimator.

    Attributes:
        label: For tables and pictures.
        family: One of `FAMILIES`.
        build: From the material to the estimator, or to the reason why the data do not allow it.
        aim: One of `AIMS`.
        draws: Whether chance has a part in it.
        visits_all: Whether it looks at the whole catalogue to draw, as a reference may: it cannot
            be cheaper than the full softmax, whatever a clock says.
        has_likelihood: Whether its loss is one, and not a surrogate that has the gradient only.
        sizes: From the sample sizes that are set to those that are measured, rising.
        is_step: Whether a training step of the batch size can have this sample size.
    """

    label: str
    family: str
    build: Callable[[Material], Estimator | str]
    aim: str = "softmax"
    draws: bool = True
    visits_all: bool = False
    has_likelihood: bool = True
    sizes: Callable[[Sequence[int], Material], tuple[int, ...]] = sizes_as_set
    is_step: Callable[[int, Material], bool] = any_size

    @property
    def mark(self) -> str:
        """Give the sign that the label carries where the softmax is not aimed at."""
        return AIMS[self.aim][0]

    @property
    def marked_label(self) -> str:
        """Give the label and, behind a blank, the sign."""
        return f"{self.label} {self.mark}".strip()
