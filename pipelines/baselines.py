"""Score popularity, neighbours, EASE and iALS as models are scored; leave `baselines.json`.

recsys baselines dataset_dir=data/prepared/mine
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.cli import job_folder, stage, sweep_name, user_folder
from recsys.config import BaselinesConfig, build, flatten, load, register_schemas, to_plain
from recsys.config.build_baselines import compare_baselines, read_compared
from recsys.evaluation import Comparison, print_comparison
from recsys.foundations import seed_everything

log = logging.getLogger(__name__)
register_schemas()


def baselines(cfg: BaselinesConfig, run_dir: Path, *, sweep: str | None = None) -> Comparison:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    with build.build_tracker(cfg.tracking, run_dir, sweep) as tracker:
        tracker.log_settings(flatten(cfg), to_plain(cfg))
        compared = read_compared(cfg)
        dataset = compared.dataset
        tracker.log_dataset(cfg.dataset.name, dataset.fingerprint, str(dataset.path))
        comparison = compare_baselines(cfg, compared)
        files = comparison.write(run_dir / "baselines.json")
        tracker.log_metrics(comparison.flat_metrics(), step=0)
        for file in files:
            tracker.log_artifact(file, "report")
    print_comparison(comparison)
    log.info("baselines: %s", files[0])
    return comparison


@stage("baselines")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    cfg = load(tree, BaselinesConfig, folder=user_folder())
    baselines(cfg, job_folder(), sweep=sweep_name())


if __name__ == "__main__":
    main()
