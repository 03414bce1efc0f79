"""Batches in which a user has many positives: each objective, and whose columns are candidates."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recsys.data import (
    Events,
    FeatureSchema,
    FeatureTable,
    ProfileBatches,
    SequenceBatches,
    TrainingBatch,
    TrainingBatches,
)
from recsys.foundations import make_generator
from recsys.losses import full_logistic_loss, full_softmax_loss
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    ExactPopularity,
    InBatchSampler,
    MixedSampler,
    Sampler,
    UniformProposal,
    WithReplacementSampler,
)
from recsys.training import (
    CatalogueObjective,
    ImportanceObjective,
    KnownPositives,
    MonteCarlo,
    Objective,
    ReferenceObjective,
    SampledLoss,
    SampledObjective,
    SampleGrowth,
    grow_shared,
    sampled_losses,
    smooth_catalogue_loss,
    smooth_sampled_loss,
)
from recsys.training.sampled_losses import SampledTerms

KEEPING = partial(sampled_losses.standard_softmax, remove_accidental_hits=False)
COUNTS = torch.tensor([4.0, 1, 2, 3, 6])


def make_profiles() -> TrainingBatch:
    """Make three users of which the first has three events, the second none, the third two."""
    return TrainingBatch(
        users=np.array([4, 5, 2]),
        positives=np.array([0, 3, 1, 3, 4]),
        histories=np.array([[1, 3], [2, -1], [4, 3]]),
        weights=None,
        context=FeatureTable.missing(FeatureSchema(), 3),
        query_rows=np.array([0, 0, 0, 2, 2]),
    )


SCORES = torch.tensor(
    [[0.5, -1.0, 0.0, 1.5, -0.5], [-1.0, 2.0, -2.0, 0.0, 1.0], [0.0, 0.5, -0.5, 0.2, 0.1]]
)


def sampled(loss: SampledLoss, unit_items: Any) -> SampledObjective:
    samplers: list[Sampler] = [
        InBatchSampler(ExactPopularity(COUNTS)),
        WithReplacementSampler(UniformProposal(5), num_sampled=6),
    ]
    return SampledObjective(MixedSampler(samplers), unit_items.features, loss)


def importance(unit_items: Any) -> ImportanceObjective:
    growth = SampleGrowth(min_ess=4.2, max_samples=24, ess_quantile=0.0)  # some take the full one
    sampler = WithReplacementSampler(UniformProposal(5), num_sampled=6)
    return ImportanceObjective(sampler, unit_items.features, growth, grow_shared)


def bigram(unit_items: Any) -> SampledObjective:
    previous, following = np.array([1, 1, 4, 4]), np.array([0, 2, 3, 1])
    proposal = BigramProposal(COUNTS, previous, following, unigram_share=0.2)
    return SampledObjective(BigramSampler(proposal, num_sampled=4), unit_items.features, KEEPING)


OBJECTIVES: dict[str, Callable[[Any], Objective]] = {
    "full_softmax": lambda items: CatalogueObjective(full_softmax_loss, items.features),
    "smoothed": lambda items: CatalogueObjective(
        smooth_catalogue_loss(full_softmax_loss, 0.2), items.features
    ),
    "full_logistic": lambda items: CatalogueObjective(full_logistic_loss, items.features),
    "mixed": lambda items: sampled(KEEPING, items),
    "mixed_smoothed": lambda items: sampled(smooth_sampled_loss(KEEPING, 0.2, 5), items),
    "refined": lambda items: sampled(sampled_losses.refined_softmax, items),
    "bigram": bigram,
    "importance": importance,
    "reference": lambda items: ReferenceObjective(MonteCarlo(num_sampled=9), items.features),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_query_with_many_positives_has_the_losses_of_one_query_for_each(
    unit_items: Any, name: str
) -> None:
    batch = make_profiles()
    assert batch.query_rows is not None
    results = []
    for rows in (slice(None), torch.from_numpy(batch.query_rows)):
        given = batch if rows == slice(None) else batch.by_positive()
        queries = unit_items.queries(SCORES)
        objective = OBJECTIVES[name](unit_items)
        losses = objective.losses(
            unit_items.model, queries[rows], given, make_generator(0, "draws")
        )
        weights = torch.linspace(0.5, 2, 5)
        gradients = torch.autograd.grad((losses * weights).sum(), [queries, unit_items.table])
        results.append((losses, *gradients))
    for actual, expected in zip(*results, strict=True):
        assert actual.shape == expected.shape
        assert_close(actual, expected, rtol=1e-5, atol=1e-6)
    assert results[0][0].shape == (5,)
    assert results[0][0].abs().min() > 0


class Seen:
    """A loss that remembers its terms, and is the standard one."""

    def __call__(self, terms: SampledTerms) -> Tensor:
        self.terms = terms
        return KEEPING(terms)


def test_positives_of_the_same_user_leave_the_in_batch_columns_and_no_others(
    unit_items: Any,
) -> None:
    seen = Seen()
    sampled(seen, unit_items).losses(
        unit_items.model, unit_items.queries(SCORES), make_profiles(), make_generator(0)
    )
    first, third = [False] * 3 + [True] * 2, [True] * 3 + [False] * 2
    expected = [[*row, *[True] * 6] for row in (first, first, first, third, third)]
    assert seen.terms.sampled_mask is not None
    assert seen.terms.sampled_mask.tolist() == expected
    # The mean row sees 5 - (9 + 4) / 5 = 2.4 positives of others: 2.4 * count / 16 + 6 / 5.
    q = 2.4 * COUNTS / 16 + 6 / 5
    assert_close(seen.terms.sampled_log_q, q[seen.terms.sampled_rows].log())
    assert_close(seen.terms.positive_log_q, q[torch.tensor([0, 3, 1, 3, 4])].log())


def test_what_the_user_has_elsewhere_leaves_besides(unit_items: Any) -> None:
    seen, batch = Seen(), make_profiles()
    events = Events(
        np.array([2, 4, 4]),
        np.array([0, 1, 4]),
        None,
        None,
        FeatureTable.missing(FeatureSchema(), 3),
    )
    known = KnownPositives(events, 5)
    objective = SampledObjective(
        InBatchSampler(ExactPopularity(COUNTS)), unit_items.features, seen, known_positives=known
    )
    objective.losses(unit_items.model, unit_items.queries(SCORES), batch, make_generator(0))
    # Columns are 0, 3, 1 of user 4 and 3, 4 of user 2: of these user 4 knows 4, and user 2 knows 0.
    first, third = [False, False, False, True, False], [False, True, True, False, False]
    assert seen.terms.sampled_mask is not None
    assert seen.terms.sampled_mask.tolist() == [first, first, first, third, third]
    assert seen.terms.drawn_mask is not None
    assert seen.terms.drawn_mask[0].tolist() == [False, False, False, True, True]


def test_a_batch_of_one_user_has_no_candidates_in_batch(unit_items: Any) -> None:
    batch = replace(make_profiles(), query_rows=np.zeros(5, np.int64))
    objective = SampledObjective(
        InBatchSampler(ExactPopularity(COUNTS)), unit_items.features, KEEPING
    )
    losses = unit_items.losses(objective, SCORES, batch)
    assert losses.tolist() == [0.0] * 5


NUM_ITEMS, NUM_USERS, FAVOURITE = 50, 200, 5


def make_events() -> tuple[Events, NDArray[np.int64]]:
    """Make users that have every item, the first ten thrice, and one of their own five times more.

    Gives the events in an order of chance, and the own item of each user.
    """
    rng = np.random.default_rng(0)
    own = np.arange(NUM_USERS) % NUM_ITEMS
    common = np.append(np.arange(NUM_ITEMS), np.repeat(np.arange(10), 2))
    items = [rng.permutation(np.append(common, [item] * FAVOURITE)) for item in own]
    size = len(items[0])
    users = np.repeat(np.arange(NUM_USERS), size)
    context = FeatureTable.missing(FeatureSchema(), len(users))
    return Events(users, np.concatenate(items), np.arange(len(users)), None, context), own


def stand_alone(batch: TrainingBatch) -> TrainingBatch:
    """Give the batch as if each positive stood in it by itself."""
    nothing = np.full((len(batch.positives), 1), -1)
    return replace(batch.by_positive(), histories=nothing, places=None)


def share_of_own_item(unit_items: Any, batches: TrainingBatches, *, alone: bool) -> float:
    """Measure how much the own item is pushed down, against the full softmax: 1 is right.

    Args:
        unit_items: Makes the model, whose query vectors are scores.
        batches: Of an epoch.
        alone: Whether each positive is said to stand in the batch by itself.
    """
    items = type(unit_items)(NUM_ITEMS)
    events, own = make_events()
    scores = torch.randn(NUM_ITEMS, generator=torch.Generator().manual_seed(0)).repeat(NUM_USERS, 1)
    scores[torch.arange(NUM_USERS), torch.from_numpy(own)] = 2.0
    popularity = ExactPopularity(np.bincount(events.items))
    objective = SampledObjective(InBatchSampler(popularity), items.features, KEEPING)
    pushed = wanted = 0.0
    for batch in batches.epoch(0):
        given = stand_alone(batch) if alone else batch
        queries = items.queries(scores[torch.from_numpy(given.users)])
        losses = objective.losses(items.model, queries, given, make_generator(0))
        of_others = torch.from_numpy(given.positives != own[given.positive_users])
        [pull] = torch.autograd.grad(losses[of_others].sum(), [queries])
        places = torch.arange(len(pull)), torch.from_numpy(own[given.users])
        pushed += float(pull[places].sum()) * items.temperature
        full = scores[torch.from_numpy(given.positive_users[of_others.numpy()])].softmax(dim=1)
        columns = torch.from_numpy(own[given.positive_users[of_others.numpy()]])
        wanted += float(full.gather(1, columns[:, None]).sum())
    return pushed / wanted


@pytest.mark.parametrize("kind", ["profiles", "sequences"])
def test_in_batch_candidates_of_other_users_have_the_full_gradient_and_all_of_them_have_not(
    unit_items: Any, kind: str
) -> None:
    # Of eight users the others have an item 8 times or so, and the user's own one 6 times more by
    # construction. Left in, these push it down once and a half as much as they should.
    events, _ = make_events()
    settings: dict[str, Any] = {
        "clock": "order",
        "history_length": 100,
        "batch_size": 8,
        "drop_last": False,
        "seed": 0,
    }
    batches: TrainingBatches
    if kind == "profiles":
        batches = ProfileBatches(events, **settings)
    else:
        batches = SequenceBatches(events, ties="include", **settings)
    right = share_of_own_item(unit_items, batches, alone=False)
    wrong = share_of_own_item(unit_items, batches, alone=True)
    assert right == pytest.approx(1, abs=0.02)
    assert wrong > 1.3
