"""Measure rates and ratios on this machine; print tables, leave `benchmark.json`.

recsys benchmark name=step
recsys benchmark name=language language.interactions=words.parquet
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.benchmark import BenchmarkOutcome
from recsys.cli import job_folder, stage, user_folder
from recsys.config import BenchmarkConfig, build, load, register_schemas
from recsys.config.build_benchmark import run_benchmarks
from recsys.foundations import seed_everything

log = logging.getLogger(__name__)
register_schemas()


def benchmark(cfg: BenchmarkConfig, run_dir: Path) -> BenchmarkOutcome:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    outcome = run_benchmarks(cfg)
    paths = outcome.write(run_dir)
    outcome.print()
    log.info("benchmark: %s", ", ".join(str(path) for path in paths))
    return outcome


@stage("benchmark")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    benchmark(load(tree, BenchmarkConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
