"""What the training steps that are compared have in common: sizes, batches, draws."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from recsys.benchmark.synthetic import make_events, zipf_counts
from recsys.data import EventBatches, TrainingBatch
from recsys.foundations import make_generator, make_numpy_generator
from recsys.sampling import PopularityProposal

_ALPHA = 0.75  # power of the popularity that candidates are drawn by
_BATCHES = 20  # made once, then taken in turn
_EVENTS_A_USER = 100


@dataclass(frozen=True, kw_only=True)
class StepSize:
    """The sizes of a training step.

    Attributes:
        num_items: N, rows of the item table, popular by Zipf's law.
        num_users: Rows of the user table.
        batch_size: B, positives of a step.
        num_sampled: S, candidates that the batch shares, drawn with replacement.
        dim: D, of the tables and of both towers' outputs.
    """

    num_items: int
    num_users: int
    batch_size: int
    num_sampled: int
    dim: int


@dataclass(frozen=True)
class StepInputs:
    """A batch and its draws as tensors.

    Attributes:
        users: [B], int64.
        positives: [B], int64.
        sampled: [S], int64; repeats stay.
        positive_log_q: [B], float32, log of the expected count in S draws.
        sampled_log_q: [S], likewise.
    """

    users: Tensor
    positives: Tensor
    sampled: Tensor
    positive_log_q: Tensor
    sampled_log_q: Tensor


def make_step_batches(size: StepSize, *, history_length: int, seed: int) -> list[TrainingBatch]:
    """Make batches of a few users with many events each, spread over the table of users."""
    rng = make_numpy_generator(seed, "benchmark", "step")
    num_rows = _BATCHES * size.batch_size
    active = min(max(num_rows // _EVENTS_A_USER, 1), size.num_users)
    events = make_events(num_rows=num_rows, num_users=active, num_items=size.num_items, rng=rng)
    events = replace(events, users=events.users * (size.num_users // active))
    source = EventBatches(
        events,
        clock="order",
        ties="include",
        history_length=history_length,
        batch_size=size.batch_size,
        drop_last=True,
        seed=seed,
    )
    return list(source.epoch(0))


def make_proposal(num_items: int) -> PopularityProposal:
    """Make what candidates are drawn from, by a power of their popularity."""
    return PopularityProposal(zipf_counts(num_items), alpha=_ALPHA)


def draw_for(batches: Sequence[TrainingBatch], size: StepSize, *, seed: int) -> list[StepInputs]:
    """Draw candidates for each batch, as the toolkit's step does for itself."""
    generator = make_generator(seed, "benchmark", "step")
    proposal = make_proposal(size.num_items)
    log_draws = torch.tensor(float(size.num_sampled)).log()
    inputs = []
    for batch in batches:
        positives = torch.from_numpy(batch.positives).long()
        sampled = proposal.draw(size.num_sampled, generator)
        log_q = [proposal.log_probability(rows) + log_draws for rows in (positives, sampled)]
        users = torch.from_numpy(batch.users).long()
        inputs.append(StepInputs(users, positives, sampled, log_q[0].float(), log_q[1].float()))
    return inputs
