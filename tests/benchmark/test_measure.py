"""Turns, ratios and memory, with values worked by hand; no test looks at a clock."""

import json
from pathlib import Path

import pytest
import torch

from recsys.benchmark import (
    BenchmarkResult,
    Measurement,
    Ratio,
    make_events,
    memory_ratio,
    peak_bytes,
    print_benchmarks,
    time_alternately,
    time_ratio,
    write_benchmarks,
    zipf_counts,
)
from recsys.foundations import ArgumentError, make_numpy_generator


def make_result() -> BenchmarkResult:
    measurements = {
        "ours": Measurement([2.0, 4.0, 9.0], 20, "rows", 1_000_000),
        "plain": Measurement([1.0, 1.0, 1.0], 10, "rows", 4_000_000),
    }
    ratios = (
        time_ratio(measurements, "ours", "plain"),
        memory_ratio(measurements, "ours", "plain"),
    )
    return BenchmarkResult("made-up", "two jobs", {"rounds": 3}, measurements, ratios)


def test_jobs_run_once_unmeasured_and_then_in_turns_of_opposite_order() -> None:
    called: list[str] = []
    jobs = {name: lambda name=name: called.append(name) for name in "ab"}
    seconds = time_alternately("turns", jobs, rounds=3)
    assert "".join(called) == "ab" + "ab" + "ba" + "ab"
    assert {name: len(some) for name, some in seconds.items()} == {"a": 3, "b": 3}
    with pytest.raises(ArgumentError, match="`rounds` must be above 0"):
        time_alternately("turns", jobs, rounds=0)


def test_ratios_are_of_the_same_round_and_a_unit() -> None:
    # Seconds a row: 0.1, 0.2, 0.45 against 0.1 in every round.
    time, memory = make_result().ratios
    assert (time.value, time.low, time.high) == pytest.approx((2.0, 1.0, 4.5), rel=1e-12)
    assert memory == Ratio("ours", "plain", "peak memory", 0.25, 0.25, 0.25)
    assert make_result().measurements["ours"].rate == 5.0  # 20 rows in the median of 4 s


def test_peak_memory_counts_what_lives_at_once_forward_and_backward() -> None:
    def chain() -> None:
        first = torch.ones(1000)  # 4,000 bytes
        second = first + 1  # 8,000 at once
        del first
        third = second * 2  # 8,000 again
        third.view(10, 100).add_(1)  # nothing new

    assert peak_bytes(chain) == 8000
    leaf = torch.ones(1000, requires_grad=True)
    # exp keeps its result, sum one number; of the gradient there are an expanded view and the
    # product, so that at most two of 4,000 and a few scalars live.
    peak = peak_bytes(lambda: torch.autograd.backward(leaf.exp().sum()))
    assert 8000 <= peak <= 8016


def test_writes_results_and_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_benchmarks([make_result()], tmp_path / "run" / "benchmark.json")
    written = json.loads((tmp_path / "run" / "benchmark.json").read_text())
    assert written["format"] == "recsys-benchmark"
    assert written["machine"]["threads"] == torch.get_num_threads()
    one = written["results"]["made-up"]
    assert one["measurements"]["ours"]["units_per_second"] == 5.0
    assert one["ratios"][1]["quantity"] == "peak memory"
    print_benchmarks([make_result()])
    shown = capsys.readouterr().out
    assert "2 (1 to 4.5) of plain" in shown
    assert "4,000 (2,000 to 9,000)" in shown  # milliseconds
    assert "0.25 of plain" in shown
    assert "5 rows/s" in shown
    assert "1.0 MB" in shown


def test_made_up_events_are_sorted_and_popular_by_zipf() -> None:
    counts = zipf_counts(6)
    assert sorted(counts.tolist()) == [1, 2, 2, 2, 3, 6]  # 6 / rank, rounded up
    rng = make_numpy_generator(0, "test")
    events = make_events(num_rows=32_000, num_users=10, num_items=6, rng=rng)
    assert (events.users[1:] >= events.users[:-1]).all()
    found = torch.bincount(torch.from_numpy(events.items), minlength=6) / 32_000
    expected = torch.from_numpy(counts / counts.sum()).float()
    # Four standard errors of a share at most 6/16: 4 * sqrt(0.234 / 32,000) = 0.011.
    torch.testing.assert_close(found, expected, rtol=0, atol=0.011)
