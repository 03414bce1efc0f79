"""What a training run comes to: numbers for the bundle, files, records for the tracker."""

import logging
from pathlib import Path

from recsys.evaluation import Report, print_report, write_results
from recsys.tracking import Tracker
from recsys.training.fit import FitResult

log = logging.getLogger(__name__)


def scores_of(result: FitResult, report: Report | None) -> dict[str, dict[str, float]]:
    """Give the metrics by part: `validation` (after the best epoch), and the report's own part."""
    scores: dict[str, dict[str, float]] = {}
    validation = {
        name.removeprefix("validation_"): value
        for record in result.records
        if record["epoch"] == result.best_epoch
        for name, value in record.items()
        if name.startswith("validation_")
    }
    if validation:
        scores["validation"] = validation
    if report is not None:
        scores[str(report.about["part"])] = report.flat_metrics()
    return scores


def log_outcome(
    tracker: Tracker,
    run_dir: Path,
    result: FitResult,
    report: Report | None,
    bundle: Path | None,
) -> None:
    """Write and print the report and the plots; record them, and the bundle if one is given."""
    if report is None:
        log.warning("the part to evaluate on is empty: there is no report")
    else:
        part = report.about["part"]
        metrics = {f"{part}_{name}": value for name, value in report.flat_metrics().items()}
        if report.warm_start is not None:
            flat = report.warm_start.flat_metrics()
            metrics |= {f"warm_start_{name}": value for name, value in flat.items()}
        tracker.log_metrics(metrics, step=result.best_epoch)
        for file in write_results(report, run_dir, result.records):
            tracker.log_artifact(file, "report")
        print_report(report)
    if bundle is not None:
        tracker.log_artifact(bundle)
