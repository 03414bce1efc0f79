"""Build another index for a bundle, as a new bundle in `<run_dir>/bundle`.

recsys index bundle=outputs/train/.../bundle index=hnsw
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import read_bundle, replace_index
from recsys.cli import job_folder, stage, user_folder
from recsys.config import ReindexConfig, build, load, register_schemas
from recsys.config.build_index import build_index_settings
from recsys.index import FaissIndex

log = logging.getLogger(__name__)
register_schemas()


def index(cfg: ReindexConfig, run_dir: Path) -> Path:
    """Run the stage, give the new bundle's folder; tests call it without Hydra."""
    build.apply_threads(cfg)
    bundle = read_bundle(Path(cfg.bundle))
    built = FaissIndex.build(bundle.item_vectors, build_index_settings(cfg.index))
    path = replace_index(
        bundle,
        run_dir / "bundle",
        built,
        scores={},
        provenance=bundle.manifest["provenance"],
    )
    log.info("bundle with an index %s: %s", built.kind, path)
    return path


@stage("index")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    index(load(tree, ReindexConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
