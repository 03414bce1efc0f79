"""The streaming estimate: golden values, convergence to the exact rates, its saved state."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError
from recsys.sampling import ExactPopularity, SeededHashing, StreamingPopularity, TableHashing

Epochs = Callable[[Tensor, int, int], Iterator[Tensor]]


def own_buckets(num_candidates: int) -> TableHashing:
    return TableHashing(torch.arange(num_candidates)[None], num_buckets=num_candidates)


def make_estimate(num_candidates: int = 4, **options: Any) -> StreamingPopularity:
    settings = {"step_size": 0.25, "initial_gap": 8.0} | options
    return StreamingPopularity(own_buckets(num_candidates), **settings)


def check_arrays(case: Any, state: dict[str, Tensor], expected: dict[str, Any], dtype: str) -> None:
    case.check("A", state["last_seen"], expected["A"], dtype)
    case.check("B", state["gap"], expected["B"], dtype)


def test_golden(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("streaming_frequency"):
        inputs, expected = case.inputs, case.expected
        assert inputs["initial_A"] == 0
        steps = {wanted["t"]: wanted for wanted in expected.get("trace", [])}
        for dtype in case.dtypes:
            estimate = StreamingPopularity(
                TableHashing(np.array(inputs["hash_tables"]), num_buckets=inputs["num_buckets"]),
                step_size=inputs["alpha"],
                initial_gap=inputs["initial_B"],
                dtype=getattr(torch, dtype),
            )
            for step, batch in enumerate(inputs["batches"], start=1):
                estimate.update(torch.tensor(batch))
                if step in steps:
                    check_arrays(case, estimate.state_dict(), steps[step], dtype)
            if "B" in expected:
                check_arrays(case, estimate.state_dict(), expected, dtype)
            rows = torch.arange(len(inputs["hash_tables"][0]))
            actual = estimate.occurrence_probability(rows)
            assert actual.dtype == getattr(torch, dtype)
            wanted = np.array(expected["probability"], np.float64)  # null, undefined: nan
            undefined = np.isnan(wanted)
            assert actual[torch.from_numpy(undefined)].isnan().all()
            case.check(
                "probability", actual[torch.from_numpy(~undefined)], wanted[~undefined], dtype
            )


def test_equals_the_values_worked_by_hand() -> None:
    # Step size 1/4, gap 8 at first. Item 0 fills 2 of 4, then 1 of 2: a share of 1/2 each time.
    # Gaps 1 and 1: B = 8 * 3/4 + 1/4 = 6.25, then 6.25 * 3/4 + 1/4 = 4.9375.
    # Item 1 is seen in step 2, a gap of 2: B = 6 + 1/2, share 1/2. Item 3 never: 1/8 a step.
    estimate = make_estimate()
    estimate.update(torch.tensor([0, 2, 0, 2]))
    estimate.update(torch.tensor([1, 0]))
    rows = torch.tensor([[0, 1], [3, 3]])
    assert_close(
        estimate.occurrence_probability(rows),
        torch.tensor([[1 / 4.9375, 1 / 6.5], [1 / 8, 1 / 8]], dtype=torch.float64),
    )
    # Among 3 positives: 3 * share / B; for the item not seen one in 8 steps of 3 positives.
    expected = torch.tensor([[1.5 / 4.9375, 1.5 / 6.5], [1 / 8, 1 / 8]], dtype=torch.float64)
    assert_close(estimate.log_rate(rows, 3), expected.log())


def test_converges_to_the_exact_rates(zipf_counts: Tensor, shuffled_epochs: Epochs) -> None:
    estimate = make_estimate(len(zipf_counts), step_size=0.02, initial_gap=20.0)
    for batch in shuffled_epochs(zipf_counts, 12, 0):
        estimate.update(batch)
    everything = torch.arange(len(zipf_counts))
    exact = ExactPopularity(zipf_counts).log_rate(everything, 256)
    error = estimate.log_rate(everything, 256) - exact
    # A step size of 0.02 leaves a standard deviation of up to sqrt(0.01) = 0.1 in the log rate.
    often = zipf_counts * 12 >= 200  # seen in four times 1 / step_size steps or more
    assert often.sum() > 150
    assert error[often].abs().max() < 0.4
    assert error[often].square().mean().sqrt() < 0.12
    # The rates of all items together are one batch.
    assert estimate.log_rate(everything, 256).exp().sum() == pytest.approx(256, rel=0.03)


def test_is_right_for_an_item_that_comes_several_times_in_most_batches(
    zipf_counts: Tensor, shuffled_epochs: Epochs
) -> None:
    estimate = make_estimate(len(zipf_counts), step_size=0.01, initial_gap=20.0)
    for batch in shuffled_epochs(zipf_counts, 12, 1):
        estimate.update(batch)
    frequent = torch.arange(10)  # 39 of 256 down to 4 of 256
    exact = zipf_counts[:10] * 256 / zipf_counts.sum()
    assert exact.min() > 3
    assert_close(estimate.log_rate(frequent, 256).exp(), exact.double(), rtol=0.12, atol=0)
    # The gap alone would say that the first one comes once a batch: 39 times too rare.
    assert estimate.occurrence_probability(frequent)[0] == pytest.approx(1, abs=0.01)


def test_the_sizes_of_the_batches_do_not_matter(
    zipf_counts: Tensor, shuffled_epochs: Epochs
) -> None:
    # Every batch of 256 is handed on as 192 and 64, as if the size changed with every step.
    estimate = make_estimate(len(zipf_counts), step_size=0.01, initial_gap=20.0)
    for batch in shuffled_epochs(zipf_counts, 8, 2):
        estimate.update(batch[:192])
        estimate.update(batch[192:])
    exact = zipf_counts[:10] * 1000 / zipf_counts.sum()
    rates = estimate.log_rate(torch.arange(10), 1000).exp()
    assert_close(rates, exact.double(), rtol=0.25, atol=0)
    assert (rates / exact).mean() == pytest.approx(1, abs=0.06)


def test_several_tables_undo_collisions(zipf_counts: Tensor, shuffled_epochs: Epochs) -> None:
    # 400 items in 512 buckets: most share theirs in one table, few in each of four.
    everything = torch.arange(len(zipf_counts))
    exact = ExactPopularity(zipf_counts).log_rate(everything, 256)
    errors = []
    for num_tables in (1, 4):
        hashing = SeededHashing(num_tables, 512, seed=0)
        estimate = StreamingPopularity(hashing, step_size=0.02, initial_gap=20.0)
        for batch in shuffled_epochs(zipf_counts, 8, 3):
            estimate.update(batch)
        errors.append(estimate.log_rate(everything, 256) - exact)
    often = zipf_counts * 8 >= 200
    one, four = (error[often] for error in errors)
    assert one.mean() > 0.25  # the collisions add up
    assert four.mean().abs() < 0.1
    assert four.abs().max() < 0.6 < one.max()


def test_two_items_in_one_bucket_are_told_apart_by_another_table() -> None:
    # Item 0 in every batch, item 1 in every fourth; they share a bucket of the first table only.
    # After 100 occurrences 0.9^100 = 3e-5 of the initial gap is left.
    hashing = TableHashing(torch.tensor([[0, 0], [0, 1]]), num_buckets=2)
    estimate = StreamingPopularity(hashing, step_size=0.1, initial_gap=2.0)
    for step in range(400):
        estimate.update(torch.tensor([0, 1] if step % 4 == 0 else [0, 0]))
    rates = estimate.log_rate(torch.tensor([0, 1]), 2).exp()
    assert rates[1] == pytest.approx(0.25, rel=1e-4)
    assert rates[0] == pytest.approx(1.75, rel=0.1)


def test_a_large_step_size_follows_a_change_and_a_small_one_is_quieter(
    zipf_counts: Tensor, shuffled_epochs: Epochs
) -> None:
    changed = zipf_counts[:60].flip(0)
    counts = torch.cat([changed, zipf_counts[60:]])
    exact = ExactPopularity(counts).log_rate(torch.arange(60), 256)
    errors: dict[tuple[float, int], float] = {}
    for step_size in (0.01, 0.1):
        estimate = make_estimate(len(counts), step_size=step_size, initial_gap=5.0)
        for batch in shuffled_epochs(zipf_counts, 2, 4):
            estimate.update(batch)
        for epoch in range(12):
            for batch in shuffled_epochs(counts, 1, 5 + epoch):
                estimate.update(batch)
            error = estimate.log_rate(torch.arange(60), 256) - exact
            errors[step_size, epoch] = float(error.square().mean().sqrt())
    assert errors[0.1, 0] < 0.7 * errors[0.01, 0]  # one epoch after the change
    assert errors[0.01, 11] < 0.7 * errors[0.1, 11]  # twelve epochs after it


def test_goes_on_identically_from_a_saved_state(
    zipf_counts: Tensor, shuffled_epochs: Epochs
) -> None:
    def make() -> StreamingPopularity:
        return StreamingPopularity(SeededHashing(2, 128, 0), step_size=0.1, initial_gap=5.0)

    batches = list(shuffled_epochs(zipf_counts, 1, 6))
    whole, before, after = make(), make(), make()
    for batch in batches:
        whole.update(batch)
    for batch in batches[:30]:
        before.update(batch)
    saved = before.state_dict()
    after.load_state_dict(saved)
    before.update(batches[0])  # the one that was saved does not reach into the other
    for batch in batches[30:]:
        after.update(batch)
    for name, value in whole.state_dict().items():
        assert torch.equal(after.state_dict()[name], value), name
    rows = torch.arange(len(zipf_counts))
    assert torch.equal(after.log_rate(rows, 256), whole.log_rate(rows, 256))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            StreamingPopularity(SeededHashing(1, 9, 0), step_size=0.1, initial_gap=1),
            r"`last_seen` .* must be int64 of shape \[1, 8\], got int64 of shape \[1, 9\]",
        ),
        (
            StreamingPopularity(SeededHashing(1, 8, 1), step_size=0.1, initial_gap=1),
            "`hashing` of the checkpoint's state must be that of this estimate",
        ),
        (
            StreamingPopularity(
                SeededHashing(1, 8, 0), step_size=0.1, initial_gap=1, dtype=torch.float32
            ),
            r"`gap` .* must be float64 .*, got float32",
        ),
    ],
)
def test_refuses_the_state_of_another_estimate(other: StreamingPopularity, words: str) -> None:
    estimate = StreamingPopularity(SeededHashing(1, 8, 0), step_size=0.1, initial_gap=1)
    with pytest.raises(FormatError, match=words):
        estimate.load_state_dict(other.state_dict())
    with pytest.raises(FormatError, match=r"must hold gap, .*, got \[\]"):
        estimate.load_state_dict({})


def test_an_item_without_a_gap_has_no_rate() -> None:
    estimate = make_estimate(initial_gap=0.0)
    estimate.update(torch.tensor([1]))
    assert estimate.occurrence_probability(torch.tensor([0])).isnan().all()
    assert estimate.log_rate(torch.tensor([1]), 1).isfinite().all()
    with pytest.raises(ArgumentError, match="`initial_gap` must be above 0 for the rate"):
        estimate.log_rate(torch.tensor([0, 1]), 1)


def test_none_are_expected_among_no_positives() -> None:
    assert make_estimate().log_rate(torch.tensor([0]), 0).item() == -math.inf


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step_size": 0.0}, r"`step_size` must be in \(0, 1\], got 0.0"),
        ({"step_size": math.nan}, r"`step_size` must be in \(0, 1\], got nan"),
        ({"initial_gap": -1.0}, "`initial_gap` must be 0, or finite and at least 1, got -1.0"),
        ({"initial_gap": 0.5}, "`initial_gap` must be 0, or finite and at least 1, got 0.5"),
        ({"initial_gap": math.inf}, "`initial_gap` must be 0, or finite and at least 1, got inf"),
    ],
)
def test_names_the_setting_that_is_wrong(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make_estimate(**options)


def test_names_positives_that_are_wrong() -> None:
    with pytest.raises(ShapeError, match="`positive_rows` must have shape"):
        make_estimate().update(torch.zeros(2, 2, dtype=torch.int64))
    with pytest.raises(ArgumentError, match=r"`rows` must be in \[0, 4\), got 4"):
        make_estimate().update(torch.tensor([4]))
