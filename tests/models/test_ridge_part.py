"""The ridge part: its vectors by a slow solution, and what it adds to the scores of a model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureTable, HistoryPlaces
from recsys.foundations import ArgumentError, ConfigError, ShapeError
from recsys.models import (
    ModelSpec,
    QueryInputs,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    encode_candidates,
    encode_queries,
)
from recsys.models.ridge_part import RidgePart

NUM_ITEMS, DIM, REGULARIZATION, UNOBSERVED, SCALE = 25, 16, 0.02, 0.1, 7.0
NOTHING = FeatureSchema()
HISTORIES = np.array([[3, 7, 3, -1], [-1, -1, -1, -1], [24, -1, 0, 11], [5, -1, -1, -1]])


def make_factors() -> torch.Tensor:
    return torch.randn(NUM_ITEMS, DIM, generator=torch.Generator().manual_seed(3))


def make_part() -> RidgePart:
    part = RidgePart(
        NUM_ITEMS, DIM, regularization=REGULARIZATION, unobserved=UNOBSERVED, scale=SCALE
    )
    part.set_item_factors(make_factors())
    return part


def turned_factors() -> NDArray[np.float64]:
    """Give the factors in the axes in which the part has them."""
    turned: NDArray[np.float64] = make_part().item_factors.double().numpy()
    return turned


def slow_user(items: set[int]) -> NDArray[np.float64]:
    """Solve for a history of different items, with plain sums."""
    factors = turned_factors()
    frequency = len(items) + UNOBSERVED * NUM_ITEMS
    system = REGULARIZATION * frequency * np.eye(DIM)
    for item, vector in enumerate(factors):
        system += (UNOBSERVED + (item in items)) * np.outer(vector, vector)
    solved: NDArray[np.float64] = np.linalg.solve(system, factors[sorted(items)].sum(axis=0))
    return solved


def make_model(seed: int = 0, *, counts: Any = None, **changes: Any) -> TwoTower:
    torch.manual_seed(seed)
    users: dict[str, Any] = {"history_length": 4, "id_dropout": 0.0, "history_dropout": 0.0}
    names = {"history", "num_interests", "use_id"}
    users |= {name: changes.pop(name) for name in names & changes.keys()}
    spec = ModelSpec(
        embedding_dim=6,
        user_tower=UserTowerSpec(**users),
        ridge_dim=DIM,
        ridge_regularization=REGULARIZATION,
        ridge_unobserved=UNOBSERVED,
        ridge_scale=SCALE,
        init_std=1.0,
    )
    model = build_two_tower(
        replace(spec, **changes),
        num_users=4,
        num_items=NUM_ITEMS,
        user_schema=NOTHING,
        item_schema=NOTHING,
        context_schema=NOTHING,
        item_counts=counts,
    )
    if model.ridge is not None:
        model.ridge.set_item_factors(make_factors())
    return model


def make_inputs(histories: NDArray[np.int64] = HISTORIES) -> QueryInputs:
    nothing = FeatureTable.missing(NOTHING, len(histories))
    return QueryInputs(np.arange(len(histories)), histories, nothing, nothing)


def candidates_of(model: TwoTower) -> NDArray[np.float32]:
    return encode_candidates(model, FeatureTable.missing(NOTHING, NUM_ITEMS), NUM_ITEMS)


def test_vectors_of_histories_equal_a_slow_solution_and_repeats_count_once() -> None:
    histories = torch.from_numpy(HISTORIES)
    vectors = make_part().embed_histories(histories, histories >= 0)
    expected = [slow_user({3, 7}), np.zeros(DIM), slow_user({0, 11, 24}), slow_user({5})]
    np.testing.assert_allclose(vectors, np.sqrt(SCALE) * np.array(expected), atol=1e-4)


def test_histories_of_any_length_have_the_vector_of_a_slow_solution_alone_as_in_company() -> None:
    rng = np.random.default_rng(5)
    lengths = [1, DIM - 1, DIM, DIM + 1, NUM_ITEMS]  # n and K unknowns
    histories = torch.full((len(lengths), NUM_ITEMS), -1)
    for row, length in enumerate(lengths):
        histories[row, :length] = torch.from_numpy(rng.permutation(NUM_ITEMS)[:length])
    part = make_part()
    vectors = part.embed_histories(histories, histories >= 0)
    for row, length in enumerate(lengths):
        some = histories[row : row + 1, :length]
        expected = np.sqrt(SCALE) * slow_user(set(some[0].tolist()))
        np.testing.assert_allclose(vectors[row], expected, atol=1e-4)
        assert torch.equal(part.embed_histories(some, some >= 0)[0], vectors[row])


def test_factors_are_turned_to_axes_in_which_inner_products_stay() -> None:
    turned, given = turned_factors(), make_factors().double().numpy()
    np.testing.assert_allclose(turned @ turned.T, given @ given.T, atol=1e-4)
    gram = turned.T @ turned
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-4)


def test_unknown_items_are_not_there_and_the_order_does_not_matter() -> None:
    part, known = make_part(), torch.tensor([[True, False, True, False]])
    vectors = part.embed_histories(torch.tensor([[3, 9, 7, 99]]), known)
    assert torch.equal(vectors, part.embed_histories(torch.tensor([[7, 3]]), known[:, ::2]))
    unknown = part.embed_items(torch.tensor([-1, NUM_ITEMS, 2]))
    assert not unknown[:2].any()
    assert_close(unknown[2], SCALE**0.5 * torch.from_numpy(turned_factors()[2]).float())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"item_bias": True},
        {"normalize": True, "item_bias": True, "use_id": False},
        {"history": "attention", "num_interests": 3},
        {"history": "gru"},
    ],
)
def test_the_score_is_the_towers_plus_that_of_the_ridge_part(changes: dict[str, Any]) -> None:
    model, alone = make_model(**changes), make_model(**changes, ridge_dim=0)
    assert model.output_dim == alone.output_dim + DIM
    scores = encode_queries(model, make_inputs()) @ candidates_of(model).T
    of_towers = encode_queries(alone, make_inputs()) @ candidates_of(alone).T
    users = np.array([slow_user({3, 7}), np.zeros(DIM), slow_user({0, 11, 24}), slow_user({5})])
    added = SCALE * users @ turned_factors().T  # [Q, N]
    if scores.ndim == 3:
        added = added[:, None]
    np.testing.assert_allclose(scores, of_towers + added, atol=1e-3)


def test_another_scale_multiplies_the_scores_of_the_ridge_part_alone() -> None:
    model, alone = make_model(item_bias=True), make_model(item_bias=True, ridge_dim=0)
    of_towers = encode_queries(alone, make_inputs()) @ candidates_of(alone).T
    before = encode_queries(model, make_inputs()) @ candidates_of(model).T
    model.set_ridge_scale(3 * SCALE)
    assert model.spec.ridge_scale == 3 * SCALE
    after = encode_queries(model, make_inputs()) @ candidates_of(model).T
    np.testing.assert_allclose(after - of_towers, 3 * (before - of_towers), atol=1e-3)
    with pytest.raises(ArgumentError, match="`scale` must be given to a model with a ridge part"):
        alone.set_ridge_scale(1.0)


def test_training_knows_the_towers_alone_and_their_vectors_come_first() -> None:
    model = make_model(item_bias=True)
    nothing = FeatureTable.missing(NOTHING, 3)
    rows = np.array([0, 8, 24])
    model.train()
    trained = model.embed_queries(make_inputs()), model.embed_candidates(rows, nothing)
    model.eval()
    found = model.embed_queries(make_inputs()), model.embed_candidates(rows, nothing)
    assert model.training_dim == 7
    for of_training, of_search in zip(trained, found, strict=True):
        assert of_training.shape[1] == 7
        assert of_search.shape[1] == 7 + DIM
        if of_training.shape[0] == 4:  # items in training may be sent to the unknown's row
            assert_close(of_search[:, :7], of_training)
    assert model.bias_place == 6
    assert (found[0][:, 6] == 1).all()
    assert "ridge.item_factors" not in dict(model.named_parameters())
    assert {"ridge.item_factors", "ridge.squares"} <= model.state_dict().keys()


def test_vectors_are_the_same_in_any_company() -> None:
    rng = np.random.default_rng(1)
    histories = rng.integers(-1, NUM_ITEMS, (150, 4))
    histories[::7] = -1
    model = make_model()
    together = encode_queries(model, make_inputs(histories))
    for rows in (slice(0, 1), slice(3, 80), slice(149, 150)):
        alone = encode_queries(model, make_inputs(histories[rows]))
        np.testing.assert_array_equal(alone[:, 6:], together[rows, 6:])


def test_items_without_training_events_are_left_out_of_histories() -> None:
    counts = np.ones(NUM_ITEMS, dtype=np.int64)
    counts[7] = 0
    vectors = encode_queries(make_model(counts=counts), make_inputs(HISTORIES[:1]))
    np.testing.assert_allclose(vectors[0, 6:], SCALE**0.5 * slow_user({3}), atol=1e-4)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.ridge\.dim=16 needs histories"):
        make_model(history="none")
    with pytest.raises(ConfigError, match="must be 0 or a multiple of 16, got 24"):
        make_model(ridge_dim=24)
    with pytest.raises(ConfigError, match=r"model\.ridge\.scale must be above 0, got 0"):
        make_model(ridge_scale=0.0)
    with pytest.raises(ShapeError, match="factors"):
        make_part().set_item_factors(torch.zeros(3, DIM))
    rows = np.zeros(4, dtype=np.int64)
    inputs = replace(make_inputs(), places=HistoryPlaces(rows, rows))
    with pytest.raises(ArgumentError, match="a ridge part"):
        make_model(history="gru").eval().embed_queries(inputs)
