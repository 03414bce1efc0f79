"""Turn a log into a prepared dataset, and print what it holds.

recsys prepare dataset=table dataset.interactions=log.parquet dataset_dir=data/prepared/mine
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.cli import job_folder, stage, user_folder
from recsys.config import PrepareConfig, build, load, register_schemas
from recsys.config.build_dataset import build_prepared
from recsys.foundations import read_json, seed_everything

log = logging.getLogger(__name__)
register_schemas()


def prepare(cfg: PrepareConfig, run_dir: Path) -> Path:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    output = run_dir / "dataset" if cfg.dataset_dir is None else Path(cfg.dataset_dir)
    build_prepared(cfg, output)
    summary = read_json(output / "manifest.json")["summary"]
    log.info("%s\ndataset: %s", "\n".join(summary), output)
    return output


@stage("prepare")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    prepare(load(tree, PrepareConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
