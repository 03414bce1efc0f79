"""The count-min sketch: bounds, convergence to the exact rates, its saved state."""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError
from recsys.sampling import CountMinPopularity, ExactPopularity, SeededHashing, TableHashing

Epochs = Callable[[Tensor, int, int], Iterator[Tensor]]


def make_exact(num_candidates: int, initial_count: float = 1.0) -> CountMinPopularity:
    table = torch.arange(num_candidates)[None]
    return CountMinPopularity(
        TableHashing(table, num_buckets=num_candidates),
        initial_count=initial_count,
        num_candidates=num_candidates,
    )


def make_sketch(num_tables: int, num_buckets: int, num_candidates: int) -> CountMinPopularity:
    hashing = SeededHashing(num_tables, num_buckets, seed=0)
    return CountMinPopularity(hashing, initial_count=0.5, num_candidates=num_candidates)


def test_equals_the_values_worked_by_hand() -> None:
    # 5 positives, 1/2 before for each of 4 items: (3 + 1/2) / 7, (1 + 1/2) / 7 twice, (1/2) / 7.
    popularity = make_exact(4, initial_count=0.5)
    popularity.update(torch.tensor([0, 1, 0]))
    popularity.update(torch.tensor([0, 2]))
    expected = torch.tensor([3.5, 1.5, 1.5, 0.5], dtype=torch.float64) / 7
    assert_close(popularity.log_rate(torch.arange(4), 10), (10 * expected).log())
    assert popularity.count(torch.tensor([[0, 3]])).tolist() == [[3, 0]]


@given(
    batches=st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=8),
    num_buckets=st.integers(1, 12),
)
def test_never_counts_too_few(batches: list[list[int]], num_buckets: int) -> None:
    popularity = make_sketch(3, num_buckets, 31)
    for batch in batches:
        popularity.update(torch.tensor(batch, dtype=torch.int64))
    everything = torch.tensor([row for batch in batches for row in batch], dtype=torch.int64)
    exact = torch.bincount(everything, minlength=31)
    counts = popularity.count(torch.arange(31))
    assert (counts >= exact).all()
    assert (counts <= len(everything)).all()


def test_ends_at_the_exact_rates(zipf_counts: Tensor, shuffled_epochs: Epochs) -> None:
    popularity = make_exact(len(zipf_counts), initial_count=0.1)
    everything = torch.arange(len(zipf_counts))
    exact = ExactPopularity(zipf_counts).log_rate(everything, 256)
    errors = []
    for epoch in range(3):
        for batch in shuffled_epochs(zipf_counts, 1, epoch):
            popularity.update(batch)
        errors.append(float((popularity.log_rate(everything, 256) - exact).abs().max()))
    assert errors[2] < errors[1] < errors[0]  # what is left is the initial count
    assert errors[2] < 0.01


def test_comes_close_under_collisions(zipf_counts: Tensor, shuffled_epochs: Epochs) -> None:
    # 400 items in 4 tables of 128 buckets: every item shares its bucket in every table.
    sketch = make_sketch(4, 128, len(zipf_counts))
    for batch in shuffled_epochs(zipf_counts, 2, 0):
        sketch.update(batch)
    everything = torch.arange(len(zipf_counts))
    excess = sketch.count(everything) - 2 * zipf_counts
    assert (excess >= 0).all()
    assert (excess[:50] / (2 * zipf_counts[:50])).max() < 0.1
    assert (excess == 0).sum() > 100
    # Counters that simply add up leave the smallest sum of the items that meet: about three times
    # the excess here.
    buckets = SeededHashing(4, 128, seed=0).buckets(everything)
    sums = torch.zeros(4, 128, dtype=torch.int64)
    sums.scatter_add_(1, buckets, (2 * zipf_counts).expand(4, -1))
    added = sums.gather(1, buckets).amin(dim=0) - 2 * zipf_counts
    assert excess.sum() < 0.5 * added.sum()


def test_goes_on_identically_from_a_saved_state(
    zipf_counts: Tensor, shuffled_epochs: Epochs
) -> None:
    batches = list(shuffled_epochs(zipf_counts, 1, 1))
    whole, before, after = (make_sketch(2, 64, len(zipf_counts)) for _ in range(3))
    for batch in batches:
        whole.update(batch)
    for batch in batches[:40]:
        before.update(batch)
    saved = before.state_dict()
    after.load_state_dict(saved)
    before.update(batches[0])
    for batch in batches[40:]:
        after.update(batch)
    rows = torch.arange(len(zipf_counts))
    assert torch.equal(after.log_rate(rows, 256), whole.log_rate(rows, 256))
    for name, value in whole.state_dict().items():
        assert torch.equal(after.state_dict()[name], value), name


def test_refuses_the_state_of_another_sketch() -> None:
    sketch = make_sketch(2, 8, 10)
    with pytest.raises(FormatError, match=r"`counts` .* must be int64 of shape \[2, 8\], got"):
        sketch.load_state_dict(make_sketch(2, 9, 10).state_dict())
    other = CountMinPopularity(SeededHashing(2, 8, 1), initial_count=0.5, num_candidates=10)
    with pytest.raises(FormatError, match="`hashing` of the checkpoint's state must be that of"):
        sketch.load_state_dict(other.state_dict())
    with pytest.raises(FormatError, match=r"must hold counts, hashing, num_positives, got \['x'\]"):
        sketch.load_state_dict({"x": torch.zeros(1)})


def test_none_are_expected_among_no_positives() -> None:
    assert make_exact(3).log_rate(torch.tensor([0]), 0).item() == -math.inf


def test_names_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match="`initial_count` must be above 0, got 0"):
        make_exact(3, initial_count=0)
    with pytest.raises(ArgumentError, match="`num_candidates` must be above 0, got 0"):
        make_sketch(2, 8, 0)
    with pytest.raises(ShapeError, match="`positive_rows` must have shape"):
        make_exact(3).update(torch.zeros(2, 2, dtype=torch.int64))
    for use in (make_exact(3).update, make_exact(3).count):
        with pytest.raises(ArgumentError, match=r"`rows` must be in \[0, 3\), got 3"):
            use(torch.tensor([3]))
