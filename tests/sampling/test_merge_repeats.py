"""A draw in which each candidate stands once: worked by hand, and against the draw as it was."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from recsys.losses import sampled_softmax_loss
from recsys.sampling import Draw, StoredVectors, merge_repeats

POSITIVES = torch.tensor([5, 2])


def make_draw(rows: list[int]) -> Draw:
    """Make a draw of 2 queries in which candidate r has an expected count of r + 1."""
    of_rows = torch.tensor(rows)
    return Draw(of_rows, (of_rows + 1.0).log(), (POSITIVES + 1.0).log(), num_draws=4.0)


def test_a_candidate_drawn_three_times_counts_three_times() -> None:
    merged = merge_repeats(make_draw([7, 2, 7, 7, 0]))
    assert merged.rows.tolist() == [0, 2, 7]
    # Expected counts of 1, 3 and 8; three draws of 8 are one of 8 / 3.
    assert_close(merged.log_q.exp(), torch.tensor([1.0, 3.0, 8 / 3]))
    assert merged.num_draws == 4.0
    assert_close(merged.positive_log_q.exp(), torch.tensor([6.0, 3.0]))


def test_a_draw_without_repeats_is_left_as_it_is() -> None:
    draw = make_draw([7, 2, 0])
    assert merge_repeats(draw) is draw


@pytest.mark.parametrize(
    "parts",
    [
        {"stored": StoredVectors(torch.tensor([1]), torch.zeros(1, 3))},
        {"column_groups": torch.tensor([4, 4, -1])},
        {"rows": torch.tensor([[7, 7, 0]] * 2), "log_q": torch.zeros(2, 3)},
    ],
)
def test_repeats_that_need_not_be_alike_stay(parts: dict[str, object]) -> None:
    draw = replace(make_draw([7, 7, 0]), **parts)  # type: ignore[arg-type]
    assert merge_repeats(draw) is draw


ROWS = st.lists(st.integers(0, 9), min_size=1, max_size=30)


@given(rows=ROWS, in_batch=st.booleans())
def test_the_softmax_over_the_sample_and_its_gradients_stay_what_they_were(
    rows: list[int], in_batch: bool
) -> None:
    draw = make_draw([*POSITIVES.tolist(), *rows])
    if in_batch:  # the first columns are the batch's own positives
        draw = replace(draw, own_columns=torch.tensor([0, 1]))
    generator = torch.Generator().manual_seed(0)
    catalogue = torch.randn(10, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    queries = torch.randn(2, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    found = []
    for one in (draw, merge_repeats(draw)):
        losses = sampled_softmax_loss(
            queries,
            catalogue[POSITIVES],
            catalogue[one.rows],
            positive_rows=POSITIVES,
            sampled_rows=one.rows,
            positive_log_q=one.positive_log_q,
            sampled_log_q=one.log_q,
            temperature=0.5,
            own_columns=one.own_columns,
        )
        weighted = losses @ torch.tensor([1.0, 3.0], dtype=torch.float64)
        found.append((losses, *torch.autograd.grad(weighted, (queries, catalogue))))
    for merged, whole in zip(*found[::-1], strict=True):
        assert_close(merged, whole, rtol=0, atol=1e-5)  # log Q is float32
