"""Pooled histories: worked by hand, and what may not leak into them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.models import EmbeddingTable
from recsys.models.pooled_history import PooledHistory


def make_encoder(
    *,
    length: int = 4,
    decay: float = 0.5,
    exponent: float = 0.5,
    dropout: float = 0.0,
) -> PooledHistory:
    return PooledHistory(
        2, length=length, decay=decay, exponent=exponent, dropout=dropout, init_std=1.0
    )


def make_table() -> EmbeddingTable:
    """Row r holds [r, 1]."""
    table = EmbeddingTable(10, 2, init_std=1.0, sparse=True)
    with torch.no_grad():
        table.weight.copy_(torch.stack([torch.arange(10.0), torch.ones(10)], dim=1))
    return table


def pool(encoder: PooledHistory, rows: list[list[int]], table: EmbeddingTable) -> Tensor:
    histories = torch.tensor(rows)
    pooled: Tensor = encoder(histories, histories >= 0, table)
    return pooled


def test_pooling_equals_the_value_worked_by_hand() -> None:
    # Newest 8, then 4, then 2: weights 1, 1/2, 1/4; the sum is 8 + 2 + 1/2 = 10.5 and the
    # weights' sum 1.75, so [10.5, 1.75] / sqrt(1.75).
    pooled = pool(make_encoder(), [[8, 4, 2, -1]], make_table())
    assert_close(pooled, torch.tensor([[10.5, 1.75]]) / 1.75**0.5)


def test_decay_1_with_exponent_1_is_the_mean() -> None:
    pooled = pool(make_encoder(decay=1.0, exponent=1.0), [[8, 4, 3]], make_table())
    assert_close(pooled, torch.tensor([[5.0, 1.0]]))


def test_an_absent_item_leaves_both_sums_and_counts_in_no_age() -> None:
    # Weights 1 and 1/2 are left: (8 + 2/2) / sqrt(1.5).
    pooled = pool(make_encoder(), [[8, -1, 2], [-1, 8, 2]], make_table())
    assert_close(pooled[:, 0], torch.tensor([9.0, 9.0]) / 1.5**0.5)


@given(padding=st.integers(0, 3))
def test_padding_changes_nothing(padding: int) -> None:
    encoder, table = make_encoder(length=5), make_table()
    padded = pool(encoder, [[7, 3] + [-1] * padding, [-1] * (2 + padding)], table)
    assert_close(padded, pool(encoder, [[7, 3], [-1, -1]], table), rtol=0, atol=1e-6)


def test_padding_and_unknown_items_get_no_gradient() -> None:
    encoder, table = make_encoder(), make_table()
    histories = torch.tensor([[7, 3, -1], [5, -1, -1]])
    known = torch.tensor([[True, False, False], [True, False, False]])
    torch.autograd.backward(encoder(histories, known, table).sum())
    assert table.weight.grad is not None
    assert table.weight.grad.coalesce().indices().tolist() == [[5, 7]]


def test_only_the_newest_items_are_looked_at() -> None:
    encoder, table = make_encoder(length=2), make_table()
    assert_close(pool(encoder, [[7, 3, 9, 9]], table), pool(encoder, [[7, 3]], table))


def test_an_empty_history_is_a_learned_vector_with_a_finite_gradient() -> None:
    encoder, table = make_encoder(), make_table()
    pooled = pool(encoder, [[-1, -1], [4, -1]], table)
    assert_close(pooled[0], encoder.empty.detach())
    torch.autograd.backward(pooled.sum())
    assert encoder.empty.grad is not None
    assert_close(encoder.empty.grad, torch.ones(2))
    assert table.weight.grad is not None
    assert table.weight.grad.to_dense().isfinite().all()


def test_a_block_of_no_columns_is_all_empty_histories() -> None:
    encoder = make_encoder()
    pooled = encoder(torch.zeros(3, 0, dtype=torch.int64), torch.zeros(3, 0).bool(), make_table())
    assert_close(pooled, encoder.empty.detach().expand(3, 2))


def test_dropout_in_training_divides_what_is_left_by_its_share_and_the_whole_history() -> None:
    torch.manual_seed(0)
    encoder, table = make_encoder(decay=1.0, exponent=1.0, dropout=0.5), make_table()
    pooled = pool(encoder, [[2, 8]] * 4000, table)
    # What is left of 2 and 8, twice, over 2 items: 2, 8, 10 or 0, each in a quarter of the rows.
    for value in (2.0, 8.0, 10.0, 0.0):
        share = torch.isclose(pooled[:, 0], torch.tensor(value)).float().mean().item()
        assert share == pytest.approx(0.25, abs=0.03)  # 4.4 standard errors
    assert_close(pool(encoder.eval(), [[2, 8]], table)[0, 0], torch.tensor(5.0))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_the_mean_over_all_masks_is_the_vector_of_search(
    exponent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All 8 masks of 3 items once, each with its chance under a dropout of 0.25.
    encoder, table = make_encoder(exponent=exponent, dropout=0.25), make_table()
    hidden = torch.tensor([[bool(mask >> place & 1) for place in range(3)] for mask in range(8)])
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.where(hidden, 0.0, 1.0).flatten())
    pooled = pool(encoder, [[8, 4, 2]] * 8, table)
    chances = torch.where(hidden, 0.25, 0.75).prod(dim=1)
    searched = pool(encoder.eval(), [[8, 4, 2]], table)[0]
    assert_close(chances @ pooled, searched)


def test_a_history_that_dropout_empties_is_zeros_and_an_empty_one_its_learned_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder, table = make_encoder(dropout=0.5), make_table()
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.zeros(shape))
    pooled = pool(encoder, [[8, 4], [-1, -1]], table)
    assert_close(pooled, torch.stack([torch.zeros(2), encoder.empty.detach()]))


def test_weights_too_small_for_float32_count_as_absent() -> None:
    # 0.01^30 = 1e-60 is no float32: such an item gets no gradient, not even one of zeros.
    encoder, table = make_encoder(length=40, decay=0.01), make_table()
    pooled = pool(encoder, [[9] * 30 + [5]], table)
    torch.autograd.backward(pooled.sum())
    assert table.weight.grad is not None
    assert table.weight.grad.coalesce().indices().tolist() == [[9]]


ITEMS = st.lists(st.lists(st.integers(-1, 9), min_size=6, max_size=6), min_size=1, max_size=5)


@given(rows=ITEMS, length=st.integers(1, 7), exponent=st.sampled_from([0.0, 0.5, 1.0]))
def test_any_gaps_give_what_a_loop_over_the_known_items_gives(
    rows: list[list[int]], length: int, exponent: float
) -> None:
    encoder, table = make_encoder(length=length, decay=0.7, exponent=exponent), make_table()
    pooled = pool(encoder.eval(), rows, table)
    for history, vector in zip(rows, pooled, strict=True):
        items = [item for item in history[:length] if item >= 0]
        weights = [0.7**age for age in range(len(items))]
        expected = encoder.empty.detach()
        if items:
            summed = sum(w * i for w, i in zip(weights, items, strict=True))
            expected = torch.tensor([summed, sum(weights)]) / sum(weights) ** exponent
        assert_close(vector.detach(), expected, rtol=1e-5, atol=1e-6)
