"""The report for people: the terminal table and the pictures."""

import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from recsys.evaluation import DialPoint, Estimate, Report, Slice, report_text, write_plots

PNG = b"\x89PNG\r\n\x1a\n"


def make_report(*, model: bool = True) -> Report:
    both = {"model": Estimate(0.2, 0.1, 0.3), "popularity": Estimate(0.1, 0.05, 0.2)}
    counts = {"num_users": 1234, "num_positives": 2000}
    metrics = {f"recall_at_{k}": Estimate(0.02 * k, 0.018 * k, 0.023 * k) for k in (1, 10)}
    common = {"ks": (1, 10), "slice_k": 10, "level": 0.95, "counts": counts}
    per_user = pa.table({"user_id": ["a"]})
    if not model:
        return Report(about={}, metrics=metrics, per_user=per_user, **common)  # type: ignore[arg-type]
    return Report(
        about={"part": "test"},
        metrics=metrics | {"coverage_at_10": Estimate(0.5)},
        per_user=per_user,
        through_index=metrics | {"index_recall_at_10": Estimate(0.97, 0.96, 0.98)},
        popularity={name: Estimate(e.value / 2, 0.0, e.value) for name, e in metrics.items()},
        difference={name: Estimate(e.value / 2, 0.001, e.value) for name, e in metrics.items()},
        slices={
            "item_popularity_decile": [
                Slice("1", 3, 4, {}, (1, 1)),
                Slice("9", 5, 6, both, (40, 89)),
                Slice("10", 30, 40, both, (90, 1500)),
            ],
            "user_activity": [
                Slice("1-5", 9, 12, both, (1, 5)),
                Slice("6-20", 7, 8, both, (6, 20)),
            ],
        },
        popularity_dial=[make_point(0.0), make_point(0.25), make_point(1.0)],
        warnings=("many scores are equal",),
        **common,  # type: ignore[arg-type]
    )


def make_point(alpha: float) -> DialPoint:
    """Make a setting that takes alpha / 10 from the recall and covers alpha / 5 more."""
    recall = 0.2 - alpha / 10
    metrics = {"recall_at_10": Estimate(recall, recall - 0.02, recall + 0.03)}
    metrics |= {
        "ndcg_at_10": Estimate(0.11, 0.1, 0.12),
        "coverage_at_10": Estimate(0.5 + alpha / 5),
    }
    metrics |= {"popularity_percentile_at_10": Estimate(0.875, 0.87, 0.88)}
    change = {"recall_at_10": Estimate(-alpha / 10, -alpha / 9, -alpha / 11)}
    return DialPoint(alpha=alpha, metrics=metrics, difference=change if alpha else {})


def test_the_table_shows_values_intervals_baseline_difference_and_index() -> None:
    text = report_text(make_report())
    [row] = [
        line for line in text.splitlines() if "0.2000 [0.1800, 0.2300]" in line and " 10 " in line
    ]
    assert "0.1000 [0.0000, 0.2000]" in row
    assert "+0.1000 [0.0010, 0.2000]" in row
    for words in ("model, exact", "popularity", "difference", "through the index", "1,234 users"):
        assert words in text
    assert "10 (90 to 1,500)" in text
    assert "Warning: many scores are equal" in text
    assert "95%" in text


def test_the_table_of_the_dial_has_a_row_a_setting() -> None:
    lines = report_text(make_report()).splitlines()
    start = next(number for number, line in enumerate(lines) if "Popularity dial" in line)
    found = [line for line in lines[start:] if "0.8750" in line]
    assert len(found) == 3
    for said in ("0.25", "0.1750 [0.1550, 0.2050]", "-0.0250 [-0.0278, -0.0227]", "0.5500"):
        assert said in found[1]
    assert "0.2000 [0.1800, 0.2300]" in found[0]
    assert "-" not in found[0]  # nothing to compare with
    assert "Popularity dial" not in report_text(replace(make_report(), popularity_dial=[]))


def test_lists_without_a_model_have_one_column_of_values() -> None:
    text = report_text(make_report(model=False))
    assert "value" in text
    assert "difference" not in text


def test_every_picture_is_written(tmp_path: Path) -> None:
    history = [
        {"epoch": 1, "train_loss": 7.0, "validation_recall_at_10": 0.1},
        {"epoch": 2, "train_loss": 6.0, "validation_recall_at_10": 0.2},
    ]
    paths = write_plots(make_report(), tmp_path / "plots", history)
    assert [path.name for path in paths] == [
        "recall_at_k.png",
        "recall_by_popularity_decile.png",
        "recall_by_user_activity.png",
        "popularity_dial.png",
        "training_curves.png",
    ]
    assert all(path.read_bytes().startswith(PNG) for path in paths)
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == sorted(
        path.name for path in paths
    )


def test_the_training_curves_have_a_second_panel_for_the_likelihood(tmp_path: Path) -> None:
    plain: dict[str, float] = {"epoch": 1, "train_loss": 7.0, "validation_recall_at_10": 0.1}
    # A perplexity beyond a float is no matter: what is drawn is its logarithm.
    for place, likelihood in enumerate((-5.0, -900.0)):
        history = [plain, plain | {"epoch": 2, "validation_log_likelihood": likelihood}]
        sizes = []
        for name, records in (("without", history[:1]), ("with", history)):
            write_plots(make_report(), tmp_path / f"{name}{place}", records)
            png = (tmp_path / f"{name}{place}" / "training_curves.png").read_bytes()
            sizes.append(struct.unpack(">II", png[16:24]))  # width and height stand there
        assert sizes[0][0] == sizes[1][0]
        assert sizes[0][1] < sizes[1][1]


def test_the_picture_of_the_dial_needs_no_interval_that_holds_the_mean(tmp_path: Path) -> None:
    # A bootstrap of few resamples may leave the mean outside its own interval.
    outside = {"recall_at_10": Estimate(0.5, 0.6, 0.7), "coverage_at_10": Estimate(0.2)}
    points = [DialPoint(alpha=alpha, metrics=outside, difference={}) for alpha in (0.0, 1.0)]
    paths = write_plots(replace(make_report(), popularity_dial=points), tmp_path)
    assert (tmp_path / "popularity_dial.png") in paths


def test_pictures_need_only_what_the_report_has(tmp_path: Path) -> None:
    loss_only = [{"epoch": 1, "train_loss": 7.0}]
    paths = write_plots(make_report(model=False), tmp_path, loss_only)
    assert [path.name for path in paths] == ["recall_at_k.png", "training_curves.png"]
