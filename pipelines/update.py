"""Add, replace and withdraw items of a bundle, as a new bundle in `<run_dir>/bundle`.

recsys update bundle=outputs/train/.../bundle items=new.parquet remove=gone.txt
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import check_replaceable, read_bundle
from recsys.cli import job_folder, list_as_written, stage, user_folder
from recsys.config import UpdateConfig, build, load, register_schemas
from recsys.config.build_update import build_recall_settings, read_items, read_removed
from recsys.updates import log_update, update_bundle

log = logging.getLogger(__name__)
register_schemas()


def update(cfg: UpdateConfig, run_dir: Path) -> Path:
    """Run the stage, give the new bundle's folder; tests call it without Hydra."""
    build.apply_threads(cfg)
    check_replaceable(run_dir / "bundle")
    bundle = read_bundle(Path(cfg.bundle))
    updated = update_bundle(
        bundle,
        run_dir / "bundle",
        items=read_items(cfg, bundle),
        remove=read_removed(cfg, bundle),
        on_unknown=cfg.on_unknown,
        list_separator=cfg.list_separator,
        recall=build_recall_settings(cfg.recall, cfg.seed),
        max_share=cfg.max_share,
    )
    log_update(updated)
    log.info("bundle: %s", updated.path)
    return updated.path


@stage("update")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    cfg = load(tree, UpdateConfig, folder=user_folder())
    cfg.remove = list_as_written("remove", cfg.remove)
    update(cfg, job_folder())


if __name__ == "__main__":
    main()
