"""Say why items have their scores for a user: by the history, and piece by piece.

recsys explain bundle=outputs/train/.../bundle user=7 item=50
"""

from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import read_bundle
from recsys.cli import as_written, stage, user_folder
from recsys.config import ExplainConfig, build, load, register_schemas
from recsys.config.build_requests import build_explained_items
from recsys.serving import Lookup, print_explanations

register_schemas()


def explain(cfg: ExplainConfig) -> None:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    lookup = Lookup(read_bundle(Path(cfg.bundle)))
    items = build_explained_items(cfg)
    found = lookup.explain(cfg.user, items, k=cfg.k, num_history=cfg.num_history, where=cfg.where)
    print_explanations(lookup, cfg.user, found)


@stage("explain")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    cfg = load(tree, ExplainConfig, folder=user_folder())
    cfg.user, cfg.item = as_written("user", cfg.user), as_written("item", cfg.item)
    explain(cfg)


if __name__ == "__main__":
    main()
