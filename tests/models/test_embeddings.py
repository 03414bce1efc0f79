"""Which row of the table an id gets, and what its gradient looks like."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError
from recsys.models import EmbeddingTable
from recsys.models.embeddings import IdRows


def make_rows(trained: list[bool], *, dropout: float = 0.0) -> IdRows:
    return IdRows(len(trained), dropout=dropout, trained=torch.tensor(trained, dtype=torch.bool))


def test_ids_outside_the_vocabulary_share_the_last_row() -> None:
    rows = make_rows([True, True, True])
    assert rows(torch.tensor([0, 2, 3, -1, 99])).tolist() == [0, 2, 3, 3, 3]


def test_ids_that_training_never_saw_share_the_last_row() -> None:
    rows = make_rows([True, False, True])
    assert rows(torch.tensor([0, 1, 2])).tolist() == [0, 3, 2]
    assert rows.known(torch.tensor([[0, 1], [-1, 2]])).tolist() == [[True, False], [False, True]]


def test_a_vocabulary_of_no_ids_knows_none() -> None:
    assert make_rows([])(torch.tensor([-1, 0, 5])).tolist() == [0, 0, 0]


def test_dropout_sends_its_share_of_ids_to_the_last_row_in_training_only() -> None:
    torch.manual_seed(0)
    rows = make_rows([True] * 10, dropout=0.25)
    ids = torch.arange(10).repeat(1000)
    dropped = (rows(ids) == 10).float().mean().item()
    assert dropped == pytest.approx(0.25, abs=0.02)  # 4.6 standard errors of 10,000 coins
    assert torch.equal(rows.eval()(ids), ids)


def test_a_sparse_table_has_a_gradient_at_the_rows_looked_up_only() -> None:
    table = EmbeddingTable(5, 2, init_std=1.0, sparse=True)
    torch.autograd.backward(table(torch.tensor([3, 1, 3])).sum())
    gradient = table.weight.grad
    assert gradient is not None
    assert gradient.is_sparse
    assert_close(gradient.to_dense()[:, 0], torch.tensor([0.0, 1, 0, 2, 0]))


def test_sparse_and_dense_tables_give_the_same_sums_and_gradients() -> None:
    gradients: list[Tensor] = []
    for sparse in (True, False):
        torch.manual_seed(0)
        table = EmbeddingTable(5, 2, init_std=1.0, sparse=sparse)
        rows, offsets = torch.tensor([0, 3, 3]), torch.tensor([0, 2])
        torch.autograd.backward(table.bag(rows, offsets, torch.tensor([1.0, 2, 3])).square().sum())
        assert table.weight.grad is not None
        gradients.append(table.weight.grad.to_dense())
    assert_close(gradients[0], gradients[1])


def test_first_values_have_the_spread_asked_for() -> None:
    torch.manual_seed(0)
    weight = EmbeddingTable(1000, 50, init_std=0.05, sparse=True).weight
    assert weight.std().item() == pytest.approx(0.05, rel=0.02)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`num_rows` must be above 0"):
        EmbeddingTable(0, 2, init_std=1.0, sparse=True)
