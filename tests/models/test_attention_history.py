"""Attention pooling: where it begins, a slow version of it, and what may not leak into it."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError
from recsys.models import EmbeddingTable, UserTowerSpec
from recsys.models.attention_history import AttentionHistory
from recsys.models.build_history import build_history
from recsys.models.history_encoder import QueryPlaces

NUM_ITEMS, DIM = 30, 8
STEADY = UserTowerSpec(
    history="attention",
    history_length=40,
    num_heads=2,
    num_interests=3,
    decay=0.8,
    exponent=0.5,
    history_dropout=0.0,
)
ONE = replace(STEADY, num_interests=1)


def make_encoder(spec: UserTowerSpec = STEADY, *, training: bool = True) -> AttentionHistory:
    torch.manual_seed(0)
    encoder = build_history(spec, DIM, 0.5, trained=torch.ones(NUM_ITEMS) > 0, sparse=True)
    assert isinstance(encoder, AttentionHistory)
    with torch.no_grad():  # the ages' numbers begin at zero, where they would tell nothing
        encoder.ages.add_(torch.randn(encoder.ages.shape))
    return encoder.train(training)


def make_table() -> EmbeddingTable:
    torch.manual_seed(1)
    return EmbeddingTable(NUM_ITEMS, DIM, init_std=1.0, sparse=True)


def make_histories(num_rows: int, *, length: int = 40, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    histories = torch.randint(0, NUM_ITEMS, (num_rows, length), generator=generator)
    lengths = torch.randint(0, length + 1, (num_rows, 1), generator=generator)
    histories[torch.arange(length) >= lengths] = -1
    histories[torch.rand(histories.shape, generator=generator) < 0.1] = -1
    return histories


def encode(
    encoder: AttentionHistory, histories: Tensor, table: EmbeddingTable | None = None
) -> Tensor:
    table = make_table() if table is None else table
    encoded: Tensor = encoder(histories, histories >= 0, table)
    return encoded


def bucket(age: int) -> int:
    """Count the bounds 1, 2, ..., 16, 19.03, 22.6, ... that the age has reached, 31 at most."""
    bounds = [*range(1, 17), *(16 * 2 ** (quarter / 4) for quarter in range(1, 16))]
    return sum(age >= bound for bound in bounds)


def slow_encode(encoder: AttentionHistory, items: list[int], spec: UserTowerSpec) -> Tensor:
    """Pool the items of one history, newest first: [M, D]."""
    vectors, width = make_table().weight[items].detach(), DIM // spec.num_heads
    scores, ages = encoder.weigh(vectors).tolist(), encoder.ages.tolist()
    pooled = torch.zeros(spec.num_interests, DIM)
    for interest in range(spec.num_interests):
        for head in range(spec.num_heads):
            column = interest * spec.num_heads + head
            part = slice(head * width, (head + 1) * width)
            total, weights = torch.zeros(width), 0.0
            for age in range(len(items)):
                logit = scores[age][column] + ages[bucket(age)][column]
                weight = math.exp(logit) * spec.decay**age
                total, weights = total + weight * vectors[age, part], weights + weight
            pooled[interest, part] = total / weights**spec.exponent
    return pooled


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_it_equals_a_slow_version_written_out(training: bool, exponent: float) -> None:
    spec = replace(STEADY, exponent=exponent)
    encoder, histories = make_encoder(spec, training=training), make_histories(50)
    encoded = encode(encoder, histories)
    assert encoded.shape == (50, 3, DIM)
    for row, vectors in zip(histories.tolist()[::4], encoded[::4], strict=True):
        items = [item for item in row if item >= 0]
        expected = slow_encode(encoder, items, spec) if items else encoder.empty.detach()
        assert_close(vectors.detach(), expected, rtol=1e-4, atol=1e-4)


def test_with_weights_of_zero_it_is_the_recency_weighted_sum() -> None:
    encoder = make_encoder(ONE)
    spec = replace(ONE, history="recency")
    recency = build_history(spec, DIM, 0.5, trained=torch.ones(NUM_ITEMS) > 0, sparse=True)
    assert recency is not None
    with torch.no_grad():
        for parameter in (encoder.ages, *encoder.weigh[3].parameters()):
            parameter.zero_()
        recency.empty.copy_(encoder.empty[0])
    histories = make_histories(30)
    histories = torch.where(histories < 0, 3, histories)  # ages count positions in the other one
    histories[:, 20:], histories[3] = -1, -1
    table = make_table()
    expected = recency(histories, histories >= 0, table)
    assert_close(encode(encoder, histories, table), expected, rtol=0, atol=1e-5)


def test_one_interest_is_one_vector() -> None:
    assert encode(make_encoder(ONE), make_histories(5)).shape == (5, DIM)


@given(padding=st.integers(0, 5))
def test_padding_unknown_items_and_company_change_nothing(padding: int) -> None:
    encoder, table = make_encoder(), make_table()
    alone = encode(encoder, torch.tensor([[7, 3, 9]]), table)
    histories = torch.cat([torch.tensor([[7, -1, 3, 9]]), torch.full((1, padding), -1)], dim=1)
    company = make_histories(25, length=4 + padding)
    together = encode(encoder, torch.cat([company, histories]), table)
    assert_close(together[-1:], alone, rtol=0, atol=1e-5)


def test_padding_and_unknown_items_get_no_gradient_and_every_parameter_gets_one() -> None:
    encoder, table = make_encoder(), make_table()
    histories = torch.tensor([[7, 3, 9, -1], [5, -1, -1, -1], [-1, -1, -1, -1]])
    known = (histories >= 0) & (histories != 3)
    torch.autograd.backward(encoder(histories, known, table).square().sum())
    assert table.weight.grad is not None
    assert table.weight.grad.coalesce().indices().tolist() == [[5, 7, 9]]
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_age_counts() -> None:
    encoder = make_encoder(ONE)
    forth, back = encode(encoder, torch.tensor([[1, 2, 3], [3, 2, 1]]))
    assert not torch.allclose(forth, back)


def test_dropout_takes_items_out_in_training_only_and_the_others_keep_their_age() -> None:
    encoder, table = make_encoder(replace(ONE, history_dropout=0.5)), make_table()
    dropped = encode(encoder, torch.tensor([[2, 8]] * 4000), table)
    encoder.eval()
    newest, both = encode(encoder, torch.tensor([[2, -1], [2, 8]]), table)
    # The older one alone keeps its age 1: what a history with a hidden newest one gives.
    weight = encoder.weigh(table.weight[[8]]) + encoder.ages[1] + math.log(0.8)
    older = (table.weight[8].view(2, 4) * torch.exp(0.5 * weight).view(2, 1)).flatten()
    for value in (newest * 2**0.5, both * 2**0.5, older * 2**0.5, encoder.empty[0]):
        share = torch.isclose(dropped, value, atol=1e-5).all(dim=1).float().mean().item()
        assert share == pytest.approx(0.25, abs=0.03)  # 4.4 standard errors


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_a_long_history_is_about_as_long_a_vector_in_training_as_in_search(exponent: float) -> None:
    spec = replace(ONE, history_dropout=0.3, exponent=exponent, decay=1.0, history_length=400)
    encoder, table = make_encoder(spec), make_table()
    torch.nn.init.zeros_(encoder.ages)
    histories = torch.full((50, 400), 4)
    trained = encode(encoder, histories, table).mean(dim=0)
    searched = encode(encoder.eval(), histories, table)[0]
    # 280 of 400 equal items are left: the square root of their number varies by 0.8 %.
    assert_close(trained, searched, rtol=0.02, atol=0)


def test_places_are_refused() -> None:
    place = torch.zeros(1, dtype=torch.int64)
    arguments: dict[str, Any] = {"places": QueryPlaces(place, place)}
    histories = torch.tensor([[1, 2]])
    with pytest.raises(ArgumentError, match="`places` must be None: only a gru or a transformer"):
        make_encoder()(histories, histories >= 0, make_table(), **arguments)
