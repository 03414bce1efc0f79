"""Entries by row, against loops over them; the sparse gradient of a lookup."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.models import GroupedRows
from recsys.models.grouped_rows import look_up

# Few that repeat often; rows with which a position of 4 bits just fits into a word of 32 or 64
# bits, or just not; and rows so large that no position does.
edges = (2**28 - 1, 2**28, 2**29, 2**32 - 1, 2**32, 2**60 - 1, 2**60, 2**61, 2**62, 2**63 - 1)
lists_of_rows = st.sampled_from(edges).flatmap(
    lambda largest: st.lists(
        st.one_of(st.integers(0, 4), st.integers(largest - 1, largest)), max_size=17
    )
)


def make_values(num_entries: int) -> Tensor:
    return torch.arange(2.0 * num_entries).reshape(num_entries, 2) + 1


@given(rows=lists_of_rows)
def test_rows_rise_and_each_entry_finds_its_own(rows: list[int]) -> None:
    groups = GroupedRows.of(torch.tensor(rows, dtype=torch.int64))
    assert groups.rows.tolist() == sorted(set(rows))
    assert groups.rows[groups.places()].tolist() == rows


@given(rows=lists_of_rows)
def test_entries_of_a_row_keep_their_order(rows: list[int]) -> None:
    groups = GroupedRows.of(torch.tensor(rows, dtype=torch.int64))
    assert groups.order.tolist() == sorted(range(len(rows)), key=lambda entry: rows[entry])


@given(rows=lists_of_rows)
def test_sums_are_those_of_a_loop(rows: list[int]) -> None:
    groups = GroupedRows.of(torch.tensor(rows, dtype=torch.int64))
    values = make_values(len(rows))
    sums = {row: torch.zeros(2) for row in sorted(rows)}
    for row, value in zip(rows, values, strict=True):
        sums[row] += value
    expected = torch.stack(list(sums.values())) if sums else torch.zeros(0, 2)
    assert_close(groups.sum(values), expected)
    bags = torch.arange(len(rows)).flip(0)
    weights = torch.arange(len(rows)) + 0.5
    weighted = GroupedRows.of(torch.tensor(rows, dtype=torch.int64)).weighted_sum(
        values, bags, weights
    )
    assert_close(weighted, groups.sum(values[bags] * weights[:, None]))


def test_spread_gives_each_entry_its_vector_and_each_vector_its_entries_gradients() -> None:
    groups = GroupedRows.of(torch.tensor([7, 3, 7]))
    vectors = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)  # of rows 3 and 7
    spread = groups.spread(vectors)
    assert spread.tolist() == [[3, 4], [1, 2], [3, 4]]
    torch.autograd.backward((spread * torch.tensor([[1.0], [10.0], [100.0]])).sum())
    assert vectors.grad is not None
    assert vectors.grad.tolist() == [[10, 10], [101, 101]]


@pytest.mark.parametrize("shape", [(4,), (2, 2), (0,), (2, 0)])
def test_a_lookup_has_one_entry_in_its_gradient_for_each_distinct_row(shape: Any) -> None:
    table = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    rows = torch.tensor([5, 1, 5, 5])[: torch.Size(shape).numel()].reshape(shape)
    found = look_up(table, rows)
    assert torch.equal(found, table[rows])
    torch.autograd.backward((found * 2).sum())
    assert table.grad is not None
    expected = [1, 5] if rows.numel() else []
    assert table.grad._indices()[0].tolist() == expected
    assert table.grad._values()[:, 0].tolist() == ([2.0, 6.0] if expected else [])


def test_gradients_of_two_lookups_add_up_row_by_row() -> None:
    table = torch.zeros(6, 1, requires_grad=True)
    both = look_up(table, torch.tensor([4, 2, 4])).sum() + 3 * look_up(table, torch.tensor([2, 0]))
    torch.autograd.backward(both.sum())
    assert table.grad is not None
    # The first sum stands in both rows of the second: 2 for each of its entries.
    assert table.grad.to_dense()[:, 0].tolist() == [3, 0, 5, 0, 4, 0]


@pytest.mark.gpu
def test_groups_and_gradients_on_cuda_are_those_of_the_cpu() -> None:
    rows = torch.randint(50, (400,), generator=torch.Generator().manual_seed(0))
    here, there = GroupedRows.of(rows), GroupedRows.of(rows.cuda())
    for name in ("rows", "order", "starts"):
        assert torch.equal(getattr(there, name).cpu(), getattr(here, name))
    assert torch.equal(there.places().cpu(), here.places())
    gradients = []
    for device in ("cpu", "cuda"):
        table = torch.ones(50, 4, device=device, requires_grad=True)
        factors = torch.arange(400.0, device=device)[:, None]
        torch.autograd.backward((look_up(table, rows.to(device)) * factors).sum())
        assert table.grad is not None
        gradients.append(table.grad.to_dense().cpu())
    assert_close(gradients[1], gradients[0])


def test_the_gradient_of_rising_rows_is_the_tables_own() -> None:
    # Two tables whose vectors are added get the same gradient; to change one leaves the other.
    tables = [torch.zeros(6, 2, requires_grad=True) for _ in range(2)]
    rows = torch.tensor([0, 2, 5])
    torch.autograd.backward(look_up(tables[0], rows) + look_up(tables[1], rows), make_values(3))
    first, second = (table.grad for table in tables)
    assert first is not None
    assert second is not None
    assert first.coalesce().indices().tolist() == [[0, 2, 5]]
    assert_close(first.coalesce().values(), make_values(3))
    first._values().mul_(0)
    assert_close(second.coalesce().values(), make_values(3))
