"""What a tuning writes: a row a trial, the frontier, a picture."""

import io
import itertools
import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text
from rich.console import Console

from recsys.evaluation import write_tuning
from recsys.evaluation.tuning_plot import frontier, spread_out, tuning_figure
from recsys.evaluation.tuning_results import tuning_table
from recsys.index import IndexSettings, Trial, Tuning, TuningTarget


def make_trial(name: str, recall: float | None, speedup: float | None, outcome: str) -> Trial:
    return Trial(
        kind=name,
        dial={"num_probes": 3},
        outcome=outcome,
        recall=recall,
        recall_low=recall,
        recall_high=recall,
        queries_per_second=None if speedup is None else 100 * speedup,
        block_ms=None if speedup is None else 10 / speedup,
        speedup=speedup,
        index_bytes=2_000_000,
        build_seconds=1.5,
    )


def make_tuning() -> Tuning:
    target = TuningTarget(
        target_recall=0.9,
        target_k=10,
        memory_gb=None,
        queries_at_once=4,
        exact_below=0,
        num_queries=50,
        build_minutes=1,
    )
    trials = [
        make_trial("flat", 1.0, 1.0, "slower"),
        make_trial("fast", 0.91, 8.0, "chosen"),
        make_trial("beaten", 0.92, 2.0, "slower"),  # good has more of both
        make_trial("good", 0.95, 3.0, "slower"),
        make_trial("poor", 0.4, None, "below the target"),
        Trial(kind="none", dial={}, outcome="not tried", reason="too few"),
    ]
    return Tuning(target, trials, IndexSettings(kind="ivf_flat", num_probes=3), "fast", 25)


def test_the_frontier_is_what_no_other_beats_in_both() -> None:
    assert [one.kind for one in frontier(make_tuning())] == ["fast", "good", "flat"]


def test_every_trial_is_written_and_shown(tmp_path: Path) -> None:
    paths = write_tuning(make_tuning(), tmp_path)
    assert [path.name for path in paths] == ["index_tuning.json", "index_tuning.png"]
    assert paths[1].read_bytes()[1:4] == b"PNG"
    written = json.loads(paths[0].read_text())
    assert [one["kind"] for one in written["trials"]] == [
        *("flat", "fast", "beaten", "good", "poor", "none")
    ]
    assert written["settings"]["num_probes"] == 3
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(tuning_table(make_tuning()))
    shown = console.export_text()
    for words in ("fast num_probes=3", "0.9100 [0.9100, 0.9100]", "800", "2.0 MB", "too few"):
        assert words in shown


def test_the_names_in_the_picture_do_not_overlap() -> None:
    crowded = [make_trial(f"kind{i}", 0.95 + 1e-4 * i, 9 - 1e-3 * i, "slower") for i in range(9)]
    tuning = replace(make_tuning(), trials=crowded)
    assert len(frontier(tuning)) == 9
    figure = tuning_figure(tuning)
    figure.draw_without_rendering()
    [axes] = figure.axes
    named = [text for text in axes.texts if "kind" in text.get_text()]
    boxes = [Text.get_window_extent(text) for text in named]  # without the line to the point
    assert len(boxes) == 9
    for one, other in itertools.combinations(boxes, 2):
        assert one.y1 <= other.y0 or other.y1 <= one.y0
        assert one.x0 >= axes.get_window_extent().x1  # beside the points, not over them


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_heights_that_are_spread_out_are_apart_in_the_same_order(heights: list[float]) -> None:
    moved = spread_out(heights, 0.05)
    ordered = [moved[i] for i in sorted(range(len(heights)), key=lambda place: heights[place])]
    assert all(upper - lower >= 0.05 - 1e-9 for lower, upper in itertools.pairwise(ordered))
    assert max(moved) <= 1 + 1e-9


def test_nothing_measured_is_a_file_without_a_picture(tmp_path: Path) -> None:
    tuning = make_tuning()
    small = Tuning(tuning.target, (), IndexSettings(kind="flat"), "exact search: small", 0)
    assert [path.name for path in write_tuning(small, tmp_path)] == ["index_tuning.json"]
