"""The bridge from settings to benchmarks."""

from recsys.benchmark import (
    BenchmarkOutcome,
    BenchmarkResult,
    IndexCase,
    measure_filter,
    measure_index,
    measure_index_build,
    measure_loader,
    measure_loss,
    measure_prepare,
    measure_rates,
    measure_sampler,
    measure_search,
)
from recsys.config.benchmark_memory import check_benchmark_memory
from recsys.config.build_language import run_language
from recsys.config.build_step_benchmark import check_step_model, run_step_benchmark
from recsys.config.build_train_benchmark import run_train_benchmark
from recsys.config.schema_benchmark import QUICK_BENCHMARKS, BenchmarkConfig


def run_benchmarks(config: BenchmarkConfig) -> BenchmarkOutcome:
    """Run the benchmark that is named, or all that end quickly; `language` only with a log.

    Raises:
        ConfigError: The step's model needs features, of which the made-up events have none, or
            sizes need more memory than is free.
    """
    names = (*QUICK_BENCHMARKS, "language") if config.name == "all" else (config.name,)
    if "step" in names:
        check_step_model(config.model)
    check_benchmark_memory(config, names)
    interactions, language = config.language.interactions, None
    if "language" in names and interactions is not None:
        language = run_language(config.language, interactions, config.seed)
    machine = measure_rates() if set(names) != {"language"} else None
    training = run_train_benchmark(config) if "train" in names else None
    rates = [_run(name, config) for name in names if name not in ("language", "train")]
    rates += [] if training is None else [training.rates]
    return BenchmarkOutcome(rates, language, machine, training)


def _run(name: str, config: BenchmarkConfig) -> BenchmarkResult:
    rounds, seed = config.rounds, config.seed
    match name:
        case "step":
            return run_step_benchmark(config)
        case "loss":
            return measure_loss(**vars(config.loss), rounds=rounds, seed=seed)
        case "sampler":
            return measure_sampler(**vars(config.sampler), rounds=rounds, seed=seed)
        case "loader":
            return measure_loader(**vars(config.loader), rounds=rounds, seed=seed)
        case "filter":
            return measure_filter(**vars(config.filter), rounds=rounds, seed=seed)
        case "search":
            return measure_search(**vars(config.search), rounds=rounds, seed=seed)
        case "index" | "index_build":
            return _run_index(name, config)
        case _:
            return measure_prepare(**vars(config.prepare), rounds=rounds, seed=seed)


def _run_index(name: str, config: BenchmarkConfig) -> BenchmarkResult:
    if name == "index_build":
        return measure_index_build(**vars(config.index_build), seed=config.seed)
    return measure_index(IndexCase(**vars(config.index)), rounds=config.rounds, seed=config.seed)
