"""Gates of a history's items: worked by hand, what may not leak into them, their gradients."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ConfigError
from recsys.models import EmbeddingTable, UserTowerSpec
from recsys.models.history_gate import HistoryGate
from recsys.models.pooled_history import PooledHistory

NUM_ITEMS, DIM = 10, 2


def make_encoder(*, sparse: bool = True, dropout: float = 0.0, seed: int = 0) -> PooledHistory:
    torch.manual_seed(seed)
    return PooledHistory(
        DIM,
        length=4,
        decay=0.5,
        exponent=0.5,
        dropout=dropout,
        init_std=1.0,
        gate=HistoryGate(torch.ones(NUM_ITEMS, dtype=torch.bool), DIM, 3, sparse=sparse),
    )


def make_table(*, sparse: bool = True) -> EmbeddingTable:
    """Row r holds [r, 1]."""
    table = EmbeddingTable(NUM_ITEMS, DIM, init_std=1.0, sparse=sparse)
    with torch.no_grad():
        table.weight.copy_(torch.stack([torch.arange(10.0), torch.ones(10)], dim=1))
    return table


def pool(encoder: PooledHistory, rows: list[list[int]], table: EmbeddingTable) -> Tensor:
    histories = torch.tensor(rows)
    pooled: Tensor = encoder(histories, histories >= 0, table)
    return pooled


def test_a_gated_vector_equals_the_value_worked_by_hand() -> None:
    encoder, table = make_encoder(), make_table()
    gate = encoder.gate
    assert gate is not None
    with torch.no_grad():
        gate.project.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
        gate.keys.weight.zero_()
        gate.keys.weight[4] = torch.tensor([0.1, -0.2, 9.0])
        gate.biases.weight[8] = math.log(3)
    # Weights 1 and 1/2 over 8 and 4: z = [10, 1.5] / sqrt(1.5). Item 8 has the gate
    # 2 * 3 / 4 = 1.5, item 4 that of 0.1 * z[0] - 0.2 * z[1] = 0.7 / sqrt(1.5).
    of_4 = 2 / (1 + math.exp(-0.7 / 1.5**0.5))
    expected = torch.tensor([1.5 * 8 + 0.5 * of_4 * 4, 1.5 + 0.5 * of_4]) / 1.5**0.5
    assert_close(pool(encoder, [[8, 4, -1]], table)[0], expected)


def test_without_keys_and_biases_a_gate_changes_nothing() -> None:
    encoder, table = make_encoder(), make_table()
    gate, encoder.gate = encoder.gate, None
    plain = pool(encoder, [[8, 4, 2], [3, -1, -1], [-1, -1, -1]], table)
    encoder.gate = gate
    assert gate is not None
    assert not gate.biases.weight.any()
    with torch.no_grad():
        gate.keys.weight.zero_()
    assert_close(pool(encoder, [[8, 4, 2], [3, -1, -1], [-1, -1, -1]], table), plain)


def test_padding_unknown_items_and_other_histories_change_nothing() -> None:
    encoder, table = make_encoder(), make_table()
    histories = torch.tensor([[7, -1, 3, 6], [9, 9, 9, 9], [-1, -1, -1, -1]])
    known = (histories >= 0) & (histories != 6)
    pooled = encoder(histories, known, table)
    assert_close(pooled[0], pool(encoder, [[7, -1, 3, -1]], table)[0])
    assert_close(pooled[2], encoder.empty)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradients_reach_all_parts_and_only_the_rows_that_were_read(dropout: float) -> None:
    encoder, table = make_encoder(dropout=dropout), make_table()
    torch.autograd.backward(pool(encoder, [[7, 3, -1], [7, 5, 7]], table).sum())
    assert encoder.gate is not None
    for part in (table, encoder.gate.keys, encoder.gate.biases):
        gradient = part.weight.grad
        assert gradient is not None
        assert gradient.is_sparse
        rows = gradient.coalesce().indices()[0].tolist()
        assert set(rows) <= {3, 5, 7}
        assert dropout > 0 or rows == [3, 5, 7]
    assert encoder.gate.project.grad is not None
    assert encoder.gate.project.grad.abs().sum() > 0


def test_sparse_and_dense_tables_have_the_same_values_and_gradients() -> None:
    found = []
    for sparse in (True, False):
        encoder, table = make_encoder(sparse=sparse), make_table(sparse=sparse)
        pooled = pool(encoder, [[7, 3, -1], [5, 7, 7], [-1, -1, -1]], table)
        torch.autograd.backward(pooled, torch.linspace(-1, 2, 6).reshape(3, 2))
        assert encoder.gate is not None
        parameters = [encoder.gate.project, encoder.gate.keys.weight, table.weight, encoder.empty]
        gradients = [parameter.grad for parameter in parameters]
        found.append([pooled.detach(), *(g.to_dense() for g in gradients if g is not None)])
    assert len(found[0]) == 5
    assert_close(found[0], found[1])


def test_only_pooled_histories_take_a_gate() -> None:
    with pytest.raises(ConfigError, match=r"gate_dim=4 needs .*recency or mean, got gru"):
        UserTowerSpec(history="gru", gate_dim=4)
    with pytest.raises(ConfigError, match="gate_dim must be at least 0, got -1"):
        UserTowerSpec(gate_dim=-1)
