"""Bias and noise of an estimator, row by row, over many draws.

Dimensions: N rows, b rows of a block, C candidates, E output width, R draws.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recsys.diagnosis.estimator import Estimator
from recsys.diagnosis.row_block import RowBlock, Values
from recsys.diagnosis.subject import Subject
from recsys.foundations import check_positive, make_generator

GRADIENTS = ("scores", "query_vectors", "item_vectors")


@dataclass(frozen=True)
class RowErrors:
    """What the draws came to; every array has a row for each of the N rows.

    Attributes:
        num_draws: R.
        full_squares: [N, 3], squared norm of the full softmax's gradient, for `GRADIENTS`.
        bias_squares: [N, 3], squared norm of (mean estimate - full).
        error_squares: [N, 3], mean over the draws of the squared norm of (estimate - full).
        loss_differences: [N], mean of (loss - full loss), nats.
        loss_squares: [N], mean of its square.
        hits: [N], share of the candidates that are the row's positive.
        effective_sizes: [N], mean effective sample size; NaN where the estimate has none.
        facts: Means of what the draws say of themselves: `candidates`, the number a row has, and
            what else the estimator tells.
    """

    num_draws: int
    full_squares: Values
    bias_squares: Values
    error_squares: Values
    loss_differences: Values
    loss_squares: Values
    hits: Values
    effective_sizes: Values
    facts: dict[str, float]


def measure_rows(
    estimator: Estimator,
    subject: Subject,
    size: int,
    *,
    num_draws: int,
    stream: tuple[str | int, ...],
    advance: Callable[[int], None],
) -> RowErrors:
    """Draw R times for the rows and compare the gradients with the full softmax's.

    Each row counts on its own, as an example of a batch does: the gradient of its scores [C], of
    its query vector [E], and of the item vectors, which is the former times the query vector. The
    result does not depend on how rows are cut into blocks.

    Args:
        estimator: What is measured.
        subject: The rows.
        size: The sample size as it is set.
        num_draws: R, at least 1.
        stream: Seed and names of the random stream; each draw has one of its own.
        advance: Is told of each draw done, of each block of rows.
    """
    check_positive("num_draws", num_draws)
    seed, *names = stream
    blocks: list[RowBlock] = []
    told: list[dict[str, float]] = []
    for rows in subject.blocks():
        block = RowBlock(estimator, subject, rows)
        for turn in range(num_draws):
            generator = make_generator(int(seed), *names, size, turn)
            candidates = estimator.sample(subject, size, generator)
            block.add(candidates.take(rows))
            told.append({"candidates": candidates.num_draws, **candidates.facts})
            advance(1)
        blocks.append(block)
    return RowErrors(
        num_draws=num_draws,
        full_squares=np.concatenate([block.full_squares for block in blocks]),
        bias_squares=np.concatenate([block.bias_squares() for block in blocks]),
        error_squares=np.concatenate([block.errors / num_draws for block in blocks]),
        loss_differences=np.concatenate([block.loss_sums[:, 0] / num_draws for block in blocks]),
        loss_squares=np.concatenate([block.loss_sums[:, 1] / num_draws for block in blocks]),
        hits=np.concatenate([block.hits / num_draws for block in blocks]),
        effective_sizes=np.concatenate([block.effective_sizes / num_draws for block in blocks]),
        facts={name: float(np.mean([one[name] for one in told])) for name in told[0]},
    )
