"""Write the top k items of many users to a Parquet file.

recsys recommend bundle=outputs/train/.../bundle output=top.parquet k=20
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import read_bundle
from recsys.cli import stage, user_folder
from recsys.config import RecommendConfig, build, load, register_schemas
from recsys.config.build_requests import build_user_request
from recsys.serving import Lookup, write_answers

log = logging.getLogger(__name__)
register_schemas()


def recommend(cfg: RecommendConfig) -> Path:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    lookup = Lookup(read_bundle(Path(cfg.bundle)))
    users, request = build_user_request(cfg, lookup.bundle)
    output = Path(cfg.output)
    blocks = lookup.recommend_blocks(users, request)
    num_rows = write_answers(blocks, output, "user_id", with_fallback=True)
    log.info("%d rows: %s", num_rows, output)
    return output


@stage("recommend")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    recommend(load(tree, RecommendConfig, folder=user_folder()))


if __name__ == "__main__":
    main()
