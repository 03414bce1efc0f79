"""Write a bundle's vectors as other engines load them, in `<run_dir>/export`.

recsys export bundle=outputs/train/.../bundle form=qdrant
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import read_bundle
from recsys.cli import job_folder, stage, user_folder
from recsys.config import ExportConfig, build, load, register_schemas
from recsys.config.build_requests import build_export_request
from recsys.export import check_replaceable, write_export

log = logging.getLogger(__name__)
register_schemas()


def export(cfg: ExportConfig, run_dir: Path) -> Path:
    """Run the stage, give the folder of the export; tests call it without Hydra."""
    build.apply_threads(cfg)
    output = run_dir / "export"
    check_replaceable(output)
    bundle = read_bundle(Path(cfg.bundle))
    path = write_export(output, bundle, build_export_request(cfg))
    log.info("%d items: %s", len(bundle.live_rows), path)
    return path


@stage("export")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    export(load(tree, ExportConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
