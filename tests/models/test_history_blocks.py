"""Blocks of histories: each known item once, oldest first; shapes that depend on lengths alone."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.models.history_blocks import HistoryBlock, cut_compact, cut_dense, in_order

many_lists = st.lists(st.lists(st.integers(-1, 40), max_size=20), max_size=60)


def make_histories(lists: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Lists newest first as a block of 20 columns, and times that are 10 times the item."""
    rows = [[*items, *[-1] * (20 - len(items))] for items in lists]
    histories = torch.tensor(rows, dtype=torch.int64).view(-1, 20)
    return histories, histories * 10


def contents(blocks: list[HistoryBlock]) -> dict[int, list[int]]:
    """Read each history back, oldest first."""
    found: dict[int, list[int]] = {}
    for block in blocks:
        items = block.spread(block.items[:, None]).squeeze(2)  # [n, W]
        for owner, length, row in zip(block.owners, block.lengths, items, strict=True):
            if owner >= 0:
                assert int(owner) not in found
                found[int(owner)] = row[: int(length)].tolist()
    return found


@given(lists=many_lists)
def test_blocks_hold_the_known_items_of_each_history_oldest_first(lists: list[list[int]]) -> None:
    histories, times = make_histories(lists)
    expected = {
        row: [item for item in items[::-1] if item >= 0]
        for row, items in enumerate(lists)
        if any(item >= 0 for item in items)
    }
    compact = cut_compact(histories, histories >= 0, times)
    assert contents(compact) == expected
    assert sum(len(block.items) for block in compact) == sum(map(len, expected.values()))
    assert contents(cut_dense(histories, histories >= 0, times, length=20)) == expected
    for block in compact:
        assert block.times is not None
        assert torch.equal(block.times, block.items * 10)


@given(lists=many_lists)
def test_positions_and_ages_count_from_the_two_ends(lists: list[list[int]]) -> None:
    histories, _ = make_histories(lists)
    known = histories >= 0
    blocks = cut_compact(histories, known, None), cut_dense(histories, known, None, length=20)
    for block in [*blocks[0], *blocks[1]]:
        positions = block.spread(block.positions(), filler=-1)
        ages = block.spread(block.ages(), filler=-1)
        firsts = block.first_tokens()
        for row, length in enumerate(block.lengths.tolist()):
            assert positions[row, :length].tolist() == list(range(length))
            assert ages[row, :length].tolist() == list(range(length))[::-1]
            assert bool((ages[row, length:] < 0).all())
            if length > 0:
                assert int(block.positions()[firsts[row]]) == 0


@given(lists=many_lists)
def test_collecting_undoes_spreading(lists: list[list[int]]) -> None:
    histories, _ = make_histories(lists)
    known = histories >= 0
    blocks = cut_compact(histories, known, None) + cut_dense(histories, known, None, length=20)
    for block in blocks:
        tokens = torch.arange(2.0 * len(block.items)).view(-1, 2)
        assert torch.equal(block.collect(block.spread(tokens)), tokens)


@given(lists=many_lists)
def test_the_shape_of_a_dense_block_depends_on_the_length_of_the_history_alone(
    lists: list[list[int]],
) -> None:
    histories, _ = make_histories(lists)
    known = histories >= 0
    for block in cut_dense(histories, known, None, length=20):
        assert block.slots is None
        assert len(block.items) == len(block.owners) * block.width
        for row in block.owners[block.owners >= 0].tolist()[:3]:
            (alone,) = cut_dense(histories[row][None], known[row][None], None, length=20)
            assert (len(alone.owners), alone.width) == (len(block.owners), block.width)


def test_tokens_that_are_kept_stay_where_they_stand() -> None:
    histories = torch.tensor([[7, 5, 3], [4, 2, -1]])
    (block,) = cut_compact(histories, histories >= 0, histories)
    kept = block.keep(torch.tensor([0, 2, 4]))
    spread = kept.spread(kept.items[:, None], filler=-1).squeeze(2)
    assert spread.tolist() == [[3, -1, 7], [-1, 4, -1]]
    assert kept.ages().tolist() == [2, 0, 0]


def test_parts_come_back_in_order() -> None:
    parts = [torch.tensor([[10.0], [30.0]]), torch.tensor([[0.0], [20.0]])]
    ordered = in_order(parts, [torch.tensor([1, 3]), torch.tensor([0, 2])])
    assert_close(ordered.squeeze(1), torch.tensor([0.0, 10.0, 20.0, 30.0]))
