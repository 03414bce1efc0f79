"""Rates and ratios, measured on this machine: each thing against what it is compared with."""

from recsys.benchmark.floor import MachineRates, matmul_rate, measure_rates
from recsys.benchmark.growth import Growth, growth_of
from recsys.benchmark.growth_plots import write_growth_plots
from recsys.benchmark.language import Learner, measure_language
from recsys.benchmark.language_plots import write_language_plots
from recsys.benchmark.language_result import (
    EpochRecord,
    EstimatorRun,
    LanguageResult,
    write_language,
)
from recsys.benchmark.language_table import language_table, print_language
from recsys.benchmark.loader import measure_loader
from recsys.benchmark.loss import measure_loss
from recsys.benchmark.markdown import write_markdown
from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.memory import peak_bytes
from recsys.benchmark.next_word_perplexity import PerplexityJudge, unigram_perplexity
from recsys.benchmark.next_words import NextWordData, NextWords, prepare_next_words
from recsys.benchmark.outcome import BenchmarkOutcome
from recsys.benchmark.read import measure_read
from recsys.benchmark.resident_memory import resident_peak
from recsys.benchmark.result import (
    BenchmarkResult,
    Ratio,
    memory_ratio,
    time_ratio,
    write_benchmarks,
)
from recsys.benchmark.sampler import measure_sampler
from recsys.benchmark.search import measure_search
from recsys.benchmark.sentences import Sentences, read_sentences
from recsys.benchmark.step import measure_step
from recsys.benchmark.synthetic import make_events, zipf_counts
from recsys.benchmark.table import benchmark_table, print_benchmarks

__all__ = [
    "BenchmarkOutcome",
    "BenchmarkResult",
    "EpochRecord",
    "EstimatorRun",
    "Growth",
    "LanguageResult",
    "Learner",
    "MachineRates",
    "Measurement",
    "NextWordData",
    "NextWords",
    "PerplexityJudge",
    "Ratio",
    "Sentences",
    "benchmark_table",
    "growth_of",
    "language_table",
    "make_events",
    "matmul_rate",
    "measure_language",
    "measure_loader",
    "measure_loss",
    "measure_rates",
    "measure_read",
    "measure_sampler",
    "measure_search",
    "measure_step",
    "memory_ratio",
    "peak_bytes",
    "prepare_next_words",
    "print_benchmarks",
    "print_language",
    "read_sentences",
    "resident_peak",
    "time_alternately",
    "time_ratio",
    "unigram_perplexity",
    "write_benchmarks",
    "write_growth_plots",
    "write_language",
    "write_language_plots",
    "write_markdown",
    "zipf_counts",
]
