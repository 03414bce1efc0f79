"""Which interest each positive trains, against a loop; what the choice leaves alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import ArgumentError, make_generator
from recsys.losses import full_softmax_loss
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower
from recsys.training import CatalogueObjective, Learner, ModelStep, build_schedule
from recsys.training.expand_queries import expand_queries
from recsys.training.interests import route_to_interests

NOTHING = FeatureSchema()
ITEMS = FeatureTable.missing(NOTHING, 6)


def make_model(*, dropout: float = 0.0, norm: str = "none", **tower: Any) -> TwoTower:
    torch.manual_seed(0)
    spec = ModelSpec(
        embedding_dim=4,
        user_tower=UserTowerSpec(**tower),
        item_tower=ItemTowerSpec(
            id_dropout=dropout, norm=norm, hidden=() if norm == "none" else (3,)
        ),
        init_std=1.0,
    )
    return build_two_tower(
        spec,
        num_users=3,
        num_items=6,
        user_schema=NOTHING,
        item_schema=NOTHING,
        context_schema=NOTHING,
        sparse=False,
    )


def make_queries(count: int) -> Tensor:
    """Make queries of three interests each: [count, 3, 4]."""
    return torch.randn(count, 3, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()


def make_positives(query_rows: list[int] | None) -> TrainingBatch:
    """Make the positives 5, 0, 2, 2, 1 of queries of users 2, 0, 1, 1, 2."""
    num_queries = 5 if query_rows is None else max(query_rows) + 1
    return TrainingBatch(
        users=np.array([2, 0, 1, 1, 2])[:num_queries],
        positives=np.array([5, 0, 2, 2, 1]),
        histories=np.full((num_queries, 1), -1),
        weights=None,
        context=FeatureTable.missing(NOTHING, num_queries),
        query_rows=None if query_rows is None else np.array(query_rows),
    )


@pytest.mark.parametrize("query_rows", [None, [1, 0, 0, 1, 0]])
def test_each_positive_gets_the_interest_that_scores_it_highest(
    query_rows: list[int] | None,
) -> None:
    model, given = make_model().eval(), make_positives(query_rows)
    owners = list(range(5)) if query_rows is None else query_rows
    queries = make_queries(max(owners) + 1)
    routed, batch = route_to_interests(model, ITEMS, queries, given)
    items = model.embed_candidates(given.positives, ITEMS.take(given.positives)).detach()
    chosen = [
        int((queries[owner] @ item).argmax()) for owner, item in zip(owners, items, strict=True)
    ]
    assert len(set(chosen)) > 1
    expected = torch.stack([queries[o, c] for o, c in zip(owners, chosen, strict=True)])
    rows = np.arange(5) if batch.query_rows is None else batch.query_rows
    assert_close(routed[rows], expected)
    assert batch.positive_users.tolist() == given.positive_users.tolist()
    [gradient] = torch.autograd.grad(routed[rows].sum(), [queries])
    counts = torch.zeros(queries.shape[:2])
    for owner, interest in zip(owners, chosen, strict=True):
        counts[owner, interest] += 1
    assert_close(gradient, counts[:, :, None].expand(-1, -1, 4))  # of the chosen ones alone
    if query_rows is not None:  # each pair of query and interest once
        assert len(routed) == len(batch.users) == len(set(zip(owners, chosen, strict=True))) < 5


def test_the_catalogue_is_scored_once_for_each_interest_that_is_chosen() -> None:
    model, given, seen = make_model().eval(), make_positives([1, 0, 0, 1, 0]), []

    def counting_loss(
        query_embeddings: Tensor, catalogue_embeddings: Tensor, **rest: Any
    ) -> Tensor:
        seen.append(len(query_embeddings))
        return full_softmax_loss(query_embeddings, catalogue_embeddings, **rest)

    queries = make_queries(2)
    routed, batch = route_to_interests(model, ITEMS, queries, given)
    objective = CatalogueObjective(counting_loss, ITEMS)
    grouped = objective.losses(model, routed, batch, make_generator(0))
    apart = objective.losses(model, *expand_queries(routed, batch), make_generator(0))
    assert seen == [len(routed), 5]
    assert_close(grouped, apart)


@pytest.mark.parametrize("norm", ["none", "batch_norm"])
def test_the_choice_draws_nothing_and_leaves_the_model_as_it_was(norm: str) -> None:
    model = make_model(dropout=0.9, norm=norm).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    queries, batch = make_queries(5), make_positives(None)
    routed, _ = route_to_interests(model, ITEMS, queries, batch)
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.item_tower.training
    assert torch.equal(routed, route_to_interests(model.eval(), ITEMS, queries, batch)[0])


class Remember:
    """An objective that remembers what it is given, and pulls queries towards 1."""

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,
    ) -> Tensor:
        self.queries, self.batch = query_embeddings, batch
        return ((expand_queries(query_embeddings, batch)[0] - 1) ** 2).sum(dim=1)


def make_batch() -> TrainingBatch:
    return TrainingBatch(
        users=np.array([0, 2]),
        positives=np.array([5, 0, 2]),
        histories=np.array([[1, 3], [2, 4]]),
        weights=None,
        context=FeatureTable.missing(NOTHING, 2),
        query_rows=np.array([0, 1, 1]),
    )


def test_a_step_of_a_model_with_interests_has_them_as_queries() -> None:
    model = make_model(history="attention", num_interests=3, history_length=2)
    objective: Any = Remember()
    users = FeatureTable.missing(NOTHING, 3)
    step = ModelStep(model, objective, users, make_generator(0), ITEMS)
    losses, weights = step(make_batch())
    assert losses.shape == weights.shape == (3,)
    queries, batch = expand_queries(objective.queries, objective.batch)
    assert queries.shape == (3, 4)
    assert batch.users.tolist() == [0, 2, 2]
    assert batch.newest_items().tolist() == [1, 2, 2]
    assert objective.batch.is_grouped
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = build_schedule("constant", warmup_steps=0, total_steps=1)
    learner = Learner(step, [optimizer], schedule, gradient_clip=0.0)
    model.eval()  # without what training drops at random
    expected = float(step(make_batch())[0].detach().mean())
    assert learner.learn(make_batch()) == pytest.approx(expected)
    assert learner.learn(make_batch()) < expected  # the first step moved the queries towards 1


def test_events_stay_ungrouped_where_their_queries_have_interests() -> None:
    model = make_model(history="attention", num_interests=3, history_length=2)
    objective: Any = Remember()
    users = FeatureTable.missing(NOTHING, 3)
    batch = replace(make_batch(), positives=np.array([5, 0]), query_rows=None)
    ModelStep(model, objective, users, make_generator(0), ITEMS)(batch)
    assert not objective.batch.is_grouped


def test_interests_need_the_items_features() -> None:
    model = make_model(history="attention", num_interests=3, history_length=2)
    step = ModelStep(model, Remember(), FeatureTable.missing(NOTHING, 3), make_generator(0))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`item_features` must be given"):
        step(make_batch())
