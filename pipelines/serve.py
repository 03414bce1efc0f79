"""Answer lookups over HTTP until stopped.

recsys serve bundle=outputs/train/.../bundle port=8000
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import read_bundle
from recsys.cli import stage, user_folder
from recsys.config import ServeConfig, build, load, register_schemas
from recsys.serving import Lookup
from recsys.serving.app import create_app, serve_app

log = logging.getLogger(__name__)
register_schemas()


def serve(cfg: ServeConfig) -> None:
    """Run the stage; it ends when the process is stopped."""
    build.apply_threads(cfg)
    lookup = Lookup(read_bundle(Path(cfg.bundle)))
    app = create_app(
        lookup,
        max_k=cfg.max_k,
        max_batch=cfg.max_batch,
        max_body_bytes=cfg.max_body_bytes,
        popularity_alpha=cfg.popularity_alpha,
    )
    log.info("bundle %s on http://%s:%d", lookup.bundle.bundle_id[:12], cfg.host, cfg.port)
    serve_app(app, host=cfg.host, port=cfg.port)


@stage("serve")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    serve(load(tree, ServeConfig, folder=user_folder()))


if __name__ == "__main__":
    main()
