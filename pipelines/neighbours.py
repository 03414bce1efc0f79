"""Find the nearest items of items; print them, or write them to a Parquet file.

recsys neighbours bundle=outputs/train/.../bundle items=50 k=5
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import read_bundle
from recsys.cli import as_written, stage, user_folder
from recsys.config import NeighboursConfig, build, load, register_schemas
from recsys.config.build_requests import build_item_ids
from recsys.serving import Lookup, show_answers

log = logging.getLogger(__name__)
register_schemas()


def neighbours(cfg: NeighboursConfig) -> None:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    lookup = Lookup(read_bundle(Path(cfg.bundle)))
    items = build_item_ids(cfg)
    blocks = lookup.neighbour_blocks(items, k=cfg.k, exact=cfg.exact, where=cfg.where)
    show_answers(lookup, blocks, None if cfg.output is None else Path(cfg.output))


@stage("neighbours")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    cfg = load(tree, NeighboursConfig, folder=user_folder())
    cfg.items = as_written("items", cfg.items)
    neighbours(cfg)


if __name__ == "__main__":
    main()
