"""Build another index for a bundle, as a new bundle in `<run_dir>/bundle`.

recsys index bundle=outputs/train/.../bundle index=auto index.target_recall=0.99
"""

import logging
from pathlib import Path

import numpy as np
from omegaconf import DictConfig

from recsys.bundle import check_replaceable, inherited_provenance, read_bundle, replace_index
from recsys.cli import job_folder, stage, user_folder
from recsys.config import ReindexConfig, build, load, register_schemas
from recsys.config.build_evaluation import as_trained_on, dataset_of_bundle
from recsys.config.build_index import build_index, queries_of_validation
from recsys.index import TuningQueries

log = logging.getLogger(__name__)
register_schemas()


def index(cfg: ReindexConfig, run_dir: Path) -> Path:
    """Run the stage, give the new bundle's folder; tests call it without Hydra."""
    build.apply_threads(cfg)
    check_replaceable(run_dir / "bundle")
    bundle = read_bundle(Path(cfg.bundle))

    def ask(most: int) -> TuningQueries:
        dataset = as_trained_on(bundle, dataset_of_bundle(bundle, cfg.dataset_dir))
        return queries_of_validation(bundle.model, dataset, seed=cfg.seed)(most)

    vectors = np.asarray(bundle.item_vectors)  # with the changes of updates, if there are any
    built = build_index(cfg.index, vectors, ask, run_dir, seed=cfg.seed)
    before = inherited_provenance(bundle)
    provenance = {name: value for name, value in before.items() if name != "index_tuning"}
    path = replace_index(
        bundle,
        run_dir / "bundle",
        built.index,
        scores={},
        provenance=provenance | built.provenance,
    )
    log.info("bundle with an index %s: %s", built.index.kind, path)
    return path


@stage("index")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    index(load(tree, ReindexConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
