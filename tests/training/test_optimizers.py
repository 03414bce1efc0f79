"""Which optimiser gets which parameter, what each does to them, and the mixes that are refused."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import Parameter

from recsys.foundations import ArgumentError, ConfigError
from recsys.training import RowwiseAdagrad, clip_gradients
from recsys.training.optimizers import (
    build_optimizers,
    check_optimizer_settings,
    needs_sparse_gradients,
)

NAMES = ("rowwise_adagrad", "adagrad", "adam", "lazy_adam", "sgd")


class Towers(nn.Module):
    """A table that two towers may share, and one dense layer."""

    def __init__(self, *, sparse: bool = True) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 3, sparse=sparse)
        self.layer = nn.Linear(3, 1)
        nn.init.ones_(self.table.weight)

    def forward(self, rows: Tensor) -> Tensor:
        output: Tensor = self.layer(self.table(rows))
        return output

    def tables(self) -> Iterator[tuple[str, Parameter]]:
        weight = self.table.weight
        assert isinstance(weight, Parameter)
        yield from (("user_tower.table", weight), ("item_tower.table", weight))


class DenseOnly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.frozen = Parameter(torch.zeros(1), requires_grad=False)

    def tables(self) -> Iterator[tuple[str, Parameter]]:
        return iter(())


def make_settings(**changes: Any) -> dict[str, Any]:
    return {
        "table_optimizer": "rowwise_adagrad",
        "learning_rate": 0.1,
        "dense_learning_rate": 0.01,
        "weight_decay": 0.0,
        "dense_weight_decay": 0.0,
    } | changes


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_lowers_the_loss_and_touches_rows_of_the_batch_only(name: str) -> None:
    torch.manual_seed(0)
    model = Towers(sparse=needs_sparse_gradients(name))
    optimizers = build_optimizers(model, **make_settings(table_optimizer=name))
    rows = torch.tensor([1, 4, 4])
    losses = []
    for _ in range(5):
        loss = model(rows).square().sum()
        torch.autograd.backward(loss)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert torch.equal(model.table.weight[[0, 2, 3, 5]].detach(), torch.ones(4, 3))
    assert (model.table.weight[[1, 4]] != 1).all()


def test_tables_and_dense_parts_get_their_own_rate_and_decay() -> None:
    tables, dense = build_optimizers(
        Towers(), **make_settings(weight_decay=1e-4, dense_weight_decay=1e-3)
    )
    assert [group["lr"] for group in tables.param_groups] == [0.1]
    assert [group["lr"] for group in dense.param_groups] == [0.01]
    assert tables.param_groups[0]["weight_decay"] == 1e-4
    assert dense.param_groups[0]["weight_decay"] == 1e-3
    assert len(tables.param_groups[0]["params"]) == 1  # shared by two towers, updated once
    assert len(dense.param_groups[0]["params"]) == 2


def test_leaves_out_an_optimiser_without_parameters_and_parameters_that_are_not_trained() -> None:
    (dense,) = build_optimizers(DenseOnly(), **make_settings())
    assert len(dense.param_groups[0]["params"]) == 2


@pytest.mark.parametrize("name", ["rowwise_adagrad", "adam"])
def test_weight_decay_is_applied_where_it_is_accepted(name: str) -> None:
    model = Towers(sparse=needs_sparse_gradients(name))
    tables, _ = build_optimizers(model, **make_settings(table_optimizer=name, weight_decay=0.5))
    torch.autograd.backward((0 * model(torch.tensor([2]))).sum())
    tables.step()
    assert (model.table.weight[2] < 1).all()


@pytest.mark.parametrize("name", ["adagrad", "lazy_adam", "sgd"])
def test_refuses_a_weight_decay_that_would_not_be_applied(name: str) -> None:
    with pytest.raises(ConfigError, match=r"`optimizer.weight_decay` must be 0 with") as error:
        build_optimizers(Towers(), **make_settings(table_optimizer=name, weight_decay=1e-4))
    assert f"`optimizer.name={name}`" in str(error.value)
    assert "got 0.0001; use rowwise_adagrad or adam" in str(error.value)


def test_settings_are_checked_without_a_model() -> None:
    for name in NAMES:
        check_optimizer_settings(name, 0.0)
    with pytest.raises(ConfigError, match=r"`optimizer.name` must be one of rowwise_adagrad, "):
        check_optimizer_settings("adamw", 0.0)
    with pytest.raises(ConfigError, match=r"`optimizer.weight_decay` must not be negative"):
        check_optimizer_settings("adam", -1.0)


def test_only_adam_takes_dense_gradients() -> None:
    assert [name for name in NAMES if not needs_sparse_gradients(name)] == ["adam"]
    with pytest.raises(ArgumentError, match=r"`optimizer.name` must be one of"):
        needs_sparse_gradients("adamw")


@pytest.mark.parametrize("name", ["learning_rate", "dense_learning_rate"])
def test_refuses_a_rate_that_is_not_above_zero(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"`{name}` must be above 0, got 0"):
        build_optimizers(Towers(), **make_settings(**{name: 0.0}))


def test_refuses_a_negative_decay_of_the_dense_parts() -> None:
    with pytest.raises(ArgumentError, match="`dense_weight_decay` must not be negative"):
        build_optimizers(Towers(), **make_settings(dense_weight_decay=-1.0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clip", [False, True])
def test_a_batch_that_touches_no_row_of_a_table_moves_nothing(name: str, clip: bool) -> None:
    # Histories that are all empty give the table of histories such a gradient.
    model = Towers(sparse=needs_sparse_gradients(name))
    optimizers = build_optimizers(model, **make_settings(table_optimizer=name))
    before = model.table.weight.detach().clone()
    model(torch.zeros(0, dtype=torch.long)).sum().backward()
    if clip:
        clip_gradients(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
    assert torch.equal(model.table.weight, before)


def test_a_rows_first_small_gradient_stays_small_where_the_accumulator_begins_above_0() -> None:
    # Width 2, gradient g = 1e-4 in each place: mean square 1e-8. From 0 the step is lr * g / 1e-4,
    # a full one; from 1e-4 it is lr * g / sqrt(1e-4 + 1e-8), a hundredth of it.
    moves = []
    for start in (0.0, 1e-4):
        table = torch.nn.Parameter(torch.zeros(3, 2))
        rule = RowwiseAdagrad([table], learning_rate=0.5, initial_accumulator=start)
        table.grad = torch.full((3, 2), 1e-4)
        rule.step()
        moves.append(-table[0, 0].item())
    assert moves == pytest.approx([0.5, 0.5 * 1e-4 / (1e-4 + 1e-8) ** 0.5], rel=1e-4)


def test_only_rowwise_adagrad_has_an_accumulator_to_begin_with() -> None:
    with pytest.raises(ArgumentError, match="`initial_accumulator` must be 0 for adam"):
        build_optimizers(Towers(), **make_settings(table_optimizer="adam"), initial_accumulator=0.1)
    tables, _ = build_optimizers(Towers(), **make_settings(), initial_accumulator=0.1)
    sums = [state["sum"] for state in tables.state.values()]
    assert sums
    assert all(bool((values == 0.1).all()) for values in sums)
