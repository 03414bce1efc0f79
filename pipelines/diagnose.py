"""Measure bias and noise of the softmax estimators; print tables, leave `diagnosis.json`, plots.

recsys diagnose bundle=outputs/train/.../bundle
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.cli import job_folder, stage, sweep_name, user_folder
from recsys.config import DiagnoseConfig, build, flatten, load, register_schemas, to_plain
from recsys.config.build_diagnosis import diagnose_as_set, read_diagnosed
from recsys.diagnosis import Diagnosis, print_diagnosis, write_diagnosis
from recsys.foundations import seed_everything

log = logging.getLogger(__name__)
register_schemas()


def diagnose(cfg: DiagnoseConfig, run_dir: Path, *, sweep: str | None = None) -> Diagnosis:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    with build.build_tracker(cfg.tracking, run_dir, sweep) as tracker:
        tracker.log_settings(flatten(cfg), to_plain(cfg))
        diagnosed = read_diagnosed(cfg)
        dataset = diagnosed.dataset
        tracker.log_dataset(dataset.path.name, dataset.fingerprint, str(dataset.path))
        diagnosis = diagnose_as_set(cfg, diagnosed)
        files = write_diagnosis(diagnosis, run_dir)
        tracker.log_metrics(diagnosis.flat_metrics(), step=0)
        for file in files:
            tracker.log_artifact(file, "diagnosis")
    print_diagnosis(diagnosis)
    log.info("diagnosis: %s", files[0])
    return diagnosis


@stage("diagnose")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    cfg = load(tree, DiagnoseConfig, folder=user_folder())
    diagnose(cfg, job_folder(), sweep=sweep_name())


if __name__ == "__main__":
    main()
