"""Measure rates and ratios on this machine; print one table, leave `benchmark.json`.

recsys benchmark name=step
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.benchmark import BenchmarkResult, print_benchmarks, write_benchmarks
from recsys.cli import job_folder, stage, user_folder
from recsys.config import BenchmarkConfig, build, load, register_schemas
from recsys.config.build_benchmark import run_benchmarks
from recsys.foundations import seed_everything

log = logging.getLogger(__name__)
register_schemas()


def benchmark(cfg: BenchmarkConfig, run_dir: Path) -> list[BenchmarkResult]:
    """Run the stage; tests call it without Hydra."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    results = run_benchmarks(cfg)
    path = run_dir / "benchmark.json"
    write_benchmarks(results, path)
    print_benchmarks(results)
    log.info("benchmark: %s", path)
    return results


@stage("benchmark")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    benchmark(load(tree, BenchmarkConfig, folder=user_folder()), job_folder())


if __name__ == "__main__":
    main()
