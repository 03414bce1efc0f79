"""What is minimised: against slow softmaxes, and what rows of a batch may not do to each other."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import ArgumentError, make_generator
from recsys.losses import full_softmax_loss
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower
from recsys.sampling import (
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    Sample,
    UniformProposal,
    WithReplacementSampler,
)
from recsys.training import (
    CatalogueObjective,
    ModelStep,
    SampledObjective,
    TrainingRun,
    sampled_losses,
    smooth_catalogue_loss,
)

MakeRun = Callable[..., TrainingRun]
NOTHING = FeatureSchema()
COUNTS = np.array([4, 1, 2, 3, 0])
STANDARD = partial(sampled_losses.standard_softmax, remove_accidental_hits=True)


def make_model(*, norm: str = "none", hidden: tuple[int, ...] = ()) -> TwoTower:
    torch.manual_seed(0)
    user = UserTowerSpec(id_dropout=0.0, history="none", norm=norm, hidden=hidden)
    item = ItemTowerSpec(id_dropout=0.0, norm=norm, hidden=hidden)
    return build_two_tower(
        ModelSpec(embedding_dim=4, user_tower=user, item_tower=item, init_std=0.5, temperature=0.5),
        num_users=6,
        num_items=5,
        user_schema=NOTHING,
        item_schema=NOTHING,
        context_schema=NOTHING,
    )


def item_features(count: int = 5) -> FeatureTable:
    return FeatureTable.missing(NOTHING, count)


def make_batch(users: list[int], items: list[int], weights: list[float] | None) -> TrainingBatch:
    return TrainingBatch(
        np.array(users, np.int64),
        np.array(items, np.int64),
        np.full((len(users), 1), -1, np.int64),
        None if weights is None else np.array(weights, np.float32),
        FeatureTable.missing(NOTHING, len(users)),
    )


def make_step(model: TwoTower, objective: Any) -> ModelStep:
    return ModelStep(model, objective, FeatureTable.missing(NOTHING, 6), make_generator(0, "draws"))


def in_batch(*, corrected: bool = True, masked: bool = True) -> SampledObjective:
    softmax = sampled_losses.standard_softmax if corrected else sampled_losses.uncorrected_softmax
    loss = partial(softmax, remove_accidental_hits=masked)
    return SampledObjective(InBatchSampler(ExactPopularity(COUNTS)), item_features(), loss)


def scores_of(model: TwoTower, users: list[int]) -> Tensor:
    """Give [B, C] inner products divided by the temperature, from the towers alone."""
    batch = make_batch(users, [0] * len(users), None)
    step = make_step(model, Embeddings())
    queries, _ = step(batch)
    catalogue = model.embed_candidates(torch.arange(5), item_features())
    return queries @ catalogue.T / 0.5


class Embeddings:
    """An objective that gives the query embeddings as they are."""

    def losses(self, model: TwoTower, query_embeddings: Tensor, *_: Any) -> Tensor:
        return query_embeddings

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take nothing."""


def test_the_full_softmax_is_that_over_the_catalogue() -> None:
    model, users, items = make_model(), [0, 3, 5], [2, 2, 0]
    losses, weights = make_step(model, CatalogueObjective(full_softmax_loss, item_features()))(
        make_batch(users, items, None)
    )
    expected = -torch.log_softmax(scores_of(model, users), dim=1)[range(3), items]
    assert_close(losses, expected)
    assert weights.tolist() == [1.0, 1.0, 1.0]


def test_a_full_softmax_over_some_items_knows_no_others() -> None:
    model, users, items = make_model(), [0, 3, 5], [2, 2, 0]
    considered = np.array([0, 2])
    objective = CatalogueObjective(full_softmax_loss, item_features(), considered)
    losses, _ = make_step(model, objective)(make_batch(users, items, None))
    scores = scores_of(model, users)[:, considered]
    assert_close(losses, -torch.log_softmax(scores, dim=1)[range(3), [1, 1, 0]])
    for item in (1, 3):
        with pytest.raises(ArgumentError, match="must be among the candidates"):
            make_step(model, objective)(make_batch(users, [2, item, 0], None))


def test_a_smoothed_target_goes_to_the_items_that_the_loss_knows_and_to_no_others() -> None:
    model, users, items = make_model(), [0, 3, 5], [2, 4, 0]
    considered, places = np.array([0, 2, 4]), torch.tensor([1, 2, 0])
    loss = smooth_catalogue_loss(full_softmax_loss, 0.3)
    objective = CatalogueObjective(loss, item_features(), considered)
    losses, _ = make_step(model, objective)(make_batch(users, items, None))
    scores = scores_of(model, users)[:, considered]
    expected = functional.cross_entropy(scores, places, label_smoothing=0.3, reduction="none")
    assert_close(losses, expected)
    torch.autograd.backward(losses.sum())
    gradient = model.item_tower.ids.weight.grad  # type: ignore[union-attr]
    assert gradient is not None
    assert gradient.coalesce().indices().tolist() == [[0, 2, 4]]


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_in_batch_candidates_are_the_other_rows_positives(corrected: bool, masked: bool) -> None:
    model, users, items = make_model(), [0, 1, 2, 3], [0, 2, 0, 3]
    objective = in_batch(corrected=corrected, masked=masked)
    losses, _ = make_step(model, objective)(make_batch(users, items, None))
    scores = scores_of(model, users)
    for row, item in enumerate(items):
        # Q = 4 * count / 10 for every column; the own column never stands among the negatives
        columns = [item] + [
            other
            for place, other in enumerate(items)
            if place != row and not (masked and other == item)
        ]
        log_q = torch.tensor([np.log(4 * COUNTS[column] / 10) for column in columns])
        logits = scores[row, columns].double() - (log_q if corrected else 0)
        expected = float((torch.logsumexp(logits, 0) - logits[0]).detach())
        assert float(losses[row].detach()) == pytest.approx(expected, rel=1e-5)


class FixedSampler:
    """Draw what it is told."""

    def __init__(self, rows: list[int], log_q: list[float]) -> None:
        self._rows, self._log_q = torch.tensor(rows), torch.tensor(log_q, dtype=torch.float64)

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        return Sample(self._rows, lambda rows: self._log_q[rows], len(self._rows))

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Learn nothing."""

    def state_dict(self) -> dict[str, Tensor]:
        return {"fixed": self._rows}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        assert torch.equal(state["fixed"], self._rows)


def test_drawn_candidates_with_repeats_enter_as_often_as_they_were_drawn() -> None:
    model, users, items = make_model(), [4, 1], [1, 3]
    sampler = FixedSampler([2, 2, 3], log_q=[0.9, -0.3, 0.1, -0.5, 0.9])  # of items 0 to 4
    objective = SampledObjective(sampler, item_features(), STANDARD)
    losses, _ = make_step(model, objective)(make_batch(users, items, None))
    scores = scores_of(model, users)
    first = torch.stack(
        [scores[0, 1] + 0.3, scores[0, 2] - 0.1, scores[0, 2] - 0.1, scores[0, 3] + 0.5]
    )
    second = torch.stack([scores[1, 3] + 0.5, scores[1, 2] - 0.1, scores[1, 2] - 0.1])
    expected = torch.stack([row.logsumexp(0) - row[0] for row in (first, second)])
    assert_close(losses, expected)
    objective.load_state_dict(objective.state_dict())


def test_a_batch_of_one_has_loss_0_and_gradient_0_in_batch() -> None:
    model = make_model(norm="batch_norm", hidden=(3,))
    model.train()
    losses, weights = make_step(model, in_batch())(make_batch([2], [1], None))
    assert losses.tolist() == [0.0]
    (losses * weights).sum().backward()
    gradients = [value.grad for value in model.parameters() if value.grad is not None]
    dense = [grad.to_dense() if grad.is_sparse else grad for grad in gradients]
    assert all(not grad.any() for grad in dense)


def test_a_batch_of_one_item_has_loss_0_where_hits_are_masked() -> None:
    model = make_model()
    losses, _ = make_step(model, in_batch())(make_batch([0, 1, 2], [3, 3, 3], None))
    assert losses.tolist() == [0.0, 0.0, 0.0]  # every row is fully masked: 0, not nan


def test_unmasked_repeats_of_the_positive_bound_the_loss_from_below() -> None:
    # The item stands in the batch 3 times, the own column counts once: at best ln 3.
    model = make_model()
    objective = in_batch(masked=False)
    losses, _ = make_step(model, objective)(make_batch([0, 1, 2], [3, 3, 3], None))
    assert_close(losses, torch.full((3,), float(np.log(3))))


def test_weights_come_with_the_losses() -> None:
    batch = make_batch([0, 1], [0, 1], [0.5, 2.0])
    losses, weights = make_step(make_model(), in_batch())(batch)
    assert (losses.shape, weights.tolist()) == ((2,), [0.5, 2.0])


def test_draws_come_from_the_runs_own_stream() -> None:
    model = make_model()
    objective = SampledObjective(
        WithReplacementSampler(UniformProposal(5), num_sampled=3),
        item_features(),
        STANDARD,
    )
    batch = make_batch([0, 1, 2], [0, 1, 2], None)
    torch.manual_seed(1)
    first, _ = make_step(model, objective)(batch)
    torch.manual_seed(2)
    second, _ = make_step(model, objective)(batch)
    assert torch.equal(first, second)
