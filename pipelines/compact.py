"""Fold the changes of updates into a bundle's index, as a new bundle in `<run_dir>/bundle`.

recsys compact bundle=outputs/update/.../bundle
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import check_replaceable, read_bundle
from recsys.cli import job_folder, stage, user_folder
from recsys.config import CompactConfig, build, load, register_schemas
from recsys.config.build_update import build_recall_settings
from recsys.updates import compact_bundle, log_compaction

log = logging.getLogger(__name__)
register_schemas()


def compact(cfg: CompactConfig, run_dir: Path) -> Path:
    """Run the stage, give the new bundle's folder; tests call it without Hydra."""
    build.apply_threads(cfg)
    check_replaceable(run_dir / "bundle")
    compacted = compact_bundle(
        read_bundle(Path(cfg.bundle)),
        run_dir / "bundle",
        recall=build_recall_settings(cfg.recall, cfg.seed),
    )
    log_compaction(compacted)
    log.info("bundle: %s", compacted.path)
    return compacted.path


@stage("compact")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    compact(load(tree, CompactConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
