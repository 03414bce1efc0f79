"""Rates and ratios, measured on this machine: each thing against what it is compared with."""

from recsys.benchmark.batches import measure_batches
from recsys.benchmark.loss import measure_loss
from recsys.benchmark.measure import time_alternately
from recsys.benchmark.memory import peak_bytes
from recsys.benchmark.read import measure_read
from recsys.benchmark.result import (
    BenchmarkResult,
    Measurement,
    Ratio,
    memory_ratio,
    time_ratio,
    write_benchmarks,
)
from recsys.benchmark.sampler import measure_sampler
from recsys.benchmark.search import measure_search
from recsys.benchmark.step import measure_step
from recsys.benchmark.synthetic import make_events, zipf_counts
from recsys.benchmark.table import benchmark_table, print_benchmarks

__all__ = [
    "BenchmarkResult",
    "Measurement",
    "Ratio",
    "benchmark_table",
    "make_events",
    "measure_batches",
    "measure_loss",
    "measure_read",
    "measure_sampler",
    "measure_search",
    "measure_step",
    "memory_ratio",
    "peak_bytes",
    "print_benchmarks",
    "time_alternately",
    "time_ratio",
    "write_benchmarks",
    "zipf_counts",
]
