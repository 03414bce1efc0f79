"""What a training step touches: the rows of its batch, once each, and nothing of the catalogue."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recsys.benchmark import peak_bytes
from recsys.data import FeatureSchema, FeatureTable, TrainingBatch
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower
from recsys.sampling import UniformProposal, WithReplacementSampler
from recsys.training import (
    ModelStep,
    SampledObjective,
    build_optimizers,
    needs_sparse_gradients,
    sampled_losses,
    update,
)

BATCH, SAMPLED, DIM, DRAWN_FROM = 32, 48, 8, 500
NOTHING = FeatureSchema()
SPARSE_OPTIMIZERS = ("rowwise_adagrad", "adagrad", "lazy_adam", "sgd")
TABLES = ("user_tower.ids.weight", "item_tower.ids.weight")


class OneStep:
    """A model of ids, a batch with repeats, and what a step of it needs."""

    def __init__(self, num_items: int, *, optimizer: str = "rowwise_adagrad") -> None:
        torch.manual_seed(0)
        self.model = make_model(num_items, optimizer)
        rng = np.random.default_rng(0)
        self.users = rng.integers(40, size=BATCH)
        self.positives = rng.integers(DRAWN_FROM, size=BATCH)
        # Drawn from the first rows, so that catalogues of all sizes see the same ones.
        self.sampler = WithReplacementSampler(UniformProposal(DRAWN_FROM), num_sampled=SAMPLED)
        items = FeatureTable.missing(NOTHING, num_items)
        loss = partial(sampled_losses.standard_softmax, remove_accidental_hits=True)
        users = FeatureTable.missing(NOTHING, 1000)
        self.step = ModelStep(
            self.model, SampledObjective(self.sampler, items, loss), users, self.generator()
        )
        self.optimizers = build_optimizers(
            self.model,
            table_optimizer=optimizer,
            learning_rate=0.1,
            dense_learning_rate=0.01,
            weight_decay=0.0,
            dense_weight_decay=0.0,
        )

    @staticmethod
    def generator() -> torch.Generator:
        return torch.Generator().manual_seed(5)

    def drawn(self) -> Tensor:
        """Give the candidates that the first step draws: [S]."""
        return UniformProposal(DRAWN_FROM).draw(SAMPLED, self.generator())

    def item_rows(self) -> list[int]:
        """Give the distinct items of the first step."""
        return sorted({*self.positives.tolist(), *self.drawn().tolist()})

    def take(self) -> None:
        """Take one step."""
        batch = TrainingBatch(
            self.users,
            self.positives,
            np.empty((BATCH, 0), np.int64),
            None,
            FeatureTable.missing(NOTHING, BATCH),
        )
        losses, _ = self.step(batch)
        size = losses.new_tensor(BATCH)
        update(self.model, self.optimizers, losses.sum(), size, rate_share=1.0, gradient_clip=0.0)


def make_model(num_items: int, optimizer: str) -> TwoTower:
    spec = ModelSpec(
        embedding_dim=DIM,
        user_tower=UserTowerSpec(use_id=True, id_dropout=0.0, history="none", hidden=(12,)),
        item_tower=ItemTowerSpec(id_dropout=0.0, hidden=(12,)),
    )
    return build_two_tower(
        spec,
        num_users=1000,
        num_items=num_items,
        user_schema=NOTHING,
        item_schema=NOTHING,
        context_schema=NOTHING,
        sparse=needs_sparse_gradients(optimizer),
    )


def tables(model: TwoTower) -> dict[str, Tensor]:
    return {name: table.detach().clone() for name, table in model.tables()}


@pytest.mark.parametrize("optimizer", SPARSE_OPTIMIZERS)
def test_a_step_changes_the_distinct_rows_of_its_batch_and_no_other(optimizer: str) -> None:
    one = OneStep(5000, optimizer=optimizer)
    before = tables(one.model)
    one.take()
    changed = {
        name: (table != before[name]).any(dim=1).nonzero()[:, 0].tolist()
        for name, table in tables(one.model).items()
    }
    assert len(set(one.users.tolist())) < BATCH  # some users stand in the batch twice
    expected = dict(zip(TABLES, (sorted(set(one.users.tolist())), one.item_rows()), strict=True))
    assert changed == expected


def test_row_wise_state_is_one_number_a_row_and_moves_at_the_rows_of_the_batch() -> None:
    one = OneStep(5000)
    one.take()
    state = one.optimizers[0].state_dict()["state"]
    assert [value["sum"].shape for value in state.values()] == [(1001,), (5001,)]
    assert state[1]["sum"].nonzero()[:, 0].tolist() == one.item_rows()


@pytest.mark.parametrize("optimizer", ["rowwise_adagrad", "sgd"])
def test_a_step_holds_as_much_with_a_catalogue_a_hundred_times_as_large(optimizer: str) -> None:
    peaks = []
    for num_items in (10_000, 1_000_000):
        one = OneStep(num_items, optimizer=optimizer)
        one.take()  # whatever is made once
        peaks.append(peak_bytes(one.take))
    assert peaks[0] == peaks[1]
    assert peaks[0] < 4 * 10_000 * DIM  # less than the smaller table


@pytest.mark.parametrize("optimizer", ["adagrad", "lazy_adam"])
def test_what_torchs_optimisers_hold_in_a_step_is_less_than_a_table(optimizer: str) -> None:
    one = OneStep(1_000_000, optimizer=optimizer)
    one.take()
    assert peak_bytes(one.take) < 4 * 1_000_000 * DIM / 10


def test_a_table_is_made_without_a_second_one() -> None:
    assert peak_bytes(lambda: make_model(10_000, "sgd")) < 4 * 10_000 * DIM * 1.5


def test_equals_a_dense_step_worked_out_over_the_whole_tables() -> None:
    one = OneStep(600)
    values = {name: param.detach().clone() for name, param in one.model.named_parameters()}
    one.take()
    dense = {name: value.clone().requires_grad_() for name, value in values.items()}
    drawn, positives = one.drawn(), torch.from_numpy(one.positives)
    queries = tower(dense, "user_tower", dense[TABLES[0]])[torch.from_numpy(one.users)]
    catalogue = tower(dense, "item_tower", dense[TABLES[1]])  # all items, seen or not
    log_q = np.log(SAMPLED / DRAWN_FROM)
    hits = positives[:, None] == drawn
    sampled = (queries @ catalogue[drawn].T - log_q).masked_fill(hits, float("-inf"))
    own = (queries * catalogue[positives]).sum(dim=1) - log_q
    logits = torch.cat([own[:, None], sampled], dim=1)
    loss = functional.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long))
    torch.autograd.backward(loss)
    for name in TABLES:
        gradient = dense[name].grad
        assert gradient is not None
        # Row-wise Adagrad's first step: the mean square of the row is all that it has summed.
        scale = gradient.square().mean(dim=1, keepdim=True).sqrt() + 1e-10
        expected = values[name] - 0.1 * gradient / scale
        assert_close(one.model.state_dict()[name], expected, rtol=0, atol=1e-5)


def tower(values: dict[str, Tensor], name: str, rows: Tensor) -> Tensor:
    """Apply a tower's two layers to every row: [N, D]."""
    layers = f"{name}.combine.layers"
    hidden = rows @ values[f"{layers}.0.weight"].T + values[f"{layers}.0.bias"]
    return hidden.relu() @ values[f"{layers}.2.weight"].T + values[f"{layers}.2.bias"]
