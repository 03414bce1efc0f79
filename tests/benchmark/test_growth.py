"""Growth, its table and its pictures, with values worked by hand."""

import json
from pathlib import Path

import pytest

from recsys.benchmark import (
    BenchmarkResult,
    Growth,
    MachineRates,
    Measurement,
    growth_of,
    print_benchmarks,
    time_ratio,
    write_benchmarks,
    write_growth_plots,
    write_markdown,
)
from recsys.foundations import ShapeError

RATES = MachineRates(
    threads=1,
    matmul_float32=8e10,
    matmul_bfloat16=2e11,
    copy_bandwidth=2e10,
    fresh_bandwidth=2e9,
    exp_rate=1e9,
)


def make_result() -> BenchmarkResult:
    """Two sizes; a round is ten calls, so that a call at 100 takes 20 ms in the median."""
    small = Measurement([0.2, 0.1, 0.3], 40, "draws", calls=10, floor_seconds=0.004)
    large = Measurement([0.4, 0.4, 0.4], 40, "draws", 5_000_000, calls=10, floor_seconds=0.008)
    measurements = {"100 items": small, "1,000 items": large}
    line = growth_of("table", "catalogue size", {1000: large, 100: small})
    ratios = (time_ratio(measurements, "1,000 items", "100 items"),)
    other = Growth("a | b", "batch size", [8], [0.5], group="log Q")
    longer = Growth("c", "batch size", [8, 16], [0.5, 0.75], group="log Q")
    alone = Growth("d", "dimension", [64], [0.5])
    sizes = {"num_draws": 4}
    return BenchmarkResult(
        "sampler", "draws", sizes, measurements, ratios, (line, other, longer, alone)
    )


def test_growth_is_of_one_call_and_has_floors_and_peaks_where_all_points_have_them() -> None:
    line = make_result().growth[0]
    assert line.sizes == [100, 1000]
    assert line.seconds == pytest.approx([0.02, 0.04], rel=1e-12)
    assert line.floor_seconds == [0.004, 0.008]
    assert line.peak_bytes is None  # the small one has none
    with pytest.raises(ShapeError, match=r"one value for each of its 2 sizes, got \[2, 1\]"):
        Growth("table", "size", [1, 2], [0.1, 0.2], [0.1])


def test_a_floor_is_the_sum_of_what_each_rate_allows() -> None:
    # 8e9 / 8e10 = 0.1 s; 4e10 / 2e11 = 0.2 s; 2e9 / 2e10 = 0.1 s; 5e8 / 1e9 = 0.5 s.
    floor = RATES.floor_seconds(
        float32_operations=8e9, bfloat16_operations=4e10, copied_bytes=2e9, exps=5e8
    )
    assert floor == pytest.approx(0.9, rel=1e-12)
    assert make_result().measurements["100 items"].floor_ratio == pytest.approx(5.0, rel=1e-12)


def test_one_picture_an_axis_is_written_where_a_size_has_several_values(tmp_path: Path) -> None:
    paths = write_growth_plots([make_result()], tmp_path)
    assert [path.name for path in paths] == [
        "sampler_by_catalogue_size.png",
        "sampler_log_q_by_batch_size.png",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_json_keeps_floors_growth_and_the_machines_rates(tmp_path: Path) -> None:
    write_benchmarks([make_result()], tmp_path / "benchmark.json", RATES)
    written = json.loads((tmp_path / "benchmark.json").read_text())
    assert written["machine"]["rates"]["exp_rate"] == 1e9
    one = written["results"]["sampler"]
    assert one["measurements"]["100 items"]["floor_ratio"] == pytest.approx(5.0)
    assert one["growth"][0]["sizes"] == [100, 1000]
    write_benchmarks([make_result()], tmp_path / "benchmark.json")
    assert "rates" not in json.loads((tmp_path / "benchmark.json").read_text())["machine"]


def test_tables_for_a_terminal_and_a_page_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_benchmarks([make_result()], RATES)
    shown = capsys.readouterr().out
    assert "80 GF/s in float32" in " ".join(shown.split())
    assert "20 (10 to 30)" in shown
    write_markdown([make_result()], tmp_path / "benchmark.md", RATES)
    page = (tmp_path / "benchmark.md").read_text()
    # 40 draws in 0.2 s; 20 ms a call, five times its floor; nothing to compare with.
    assert "| 100 items | 200 draws/s | 20 (10 to 30) | 5 |  |  |" in page
    # Rounds' ratios 0.4 / 0.2, 0.4 / 0.1 and 0.4 / 0.3: median 2.
    assert "| 1,000 items | 100 draws/s | 40 (40 to 40) | 5 | 2 (1.33 to 4) of 100 items |" in page
    # 40 ms against 20: growth 2.
    assert "| measured | 100 | 1,000 | last / first |" in page
    assert "| table | 20 ms<br>5 x floor | 40 ms<br>5 x floor | 2 |" in page
    assert r"| a \| b | 500 ms |  |  |" in page  # one size, and no growth
    assert "| c | 500 ms | 750 ms | 1.5 |" in page
    assert "| measured | 64 |" in page  # no column of growth
    assert "sampler: Draws. num_draws = 4." in shown
    assert "\nDraws. num_draws = 4.\n" in page
    assert "40 ms" in shown
