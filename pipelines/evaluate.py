"""Score a bundle on its dataset, or any ranked list against the truth; leave `report.json`.

recsys evaluate bundle=outputs/train/.../bundle
recsys evaluate ranked=lists.csv truth=truth.csv k=[1,3,5]
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.cli import job_folder, stage, user_folder
from recsys.config import EvaluateConfig, build, load, register_schemas
from recsys.config.build_evaluation import evaluate_as_set
from recsys.evaluation import Report, print_report, write_results
from recsys.foundations import seed_everything

log = logging.getLogger(__name__)
register_schemas()


def score(cfg: EvaluateConfig) -> Report:
    """Evaluate what the settings name, without writing anything."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    return evaluate_as_set(cfg)


def evaluate(cfg: EvaluateConfig, run_dir: Path) -> Report:
    """Run the stage; tests call it without Hydra."""
    with build.build_tracker(cfg.tracking, run_dir) as tracker:
        report = score(cfg)
        files = write_results(report, run_dir)
        tracker.log_metrics(report.flat_metrics(), step=0)
        for file in files:
            tracker.log_artifact(file, "report")
    print_report(report)
    log.info("report: %s", files[0])
    return report


@stage("evaluate")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    evaluate(load(tree, EvaluateConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
