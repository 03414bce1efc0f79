"""Rates and ratios, measured on this machine: each thing against what it is compared with."""

from recsys.benchmark.filter import measure_filter
from recsys.benchmark.floor import MachineRates, matmul_rate, measure_rates
from recsys.benchmark.growth import Growth, growth_of
from recsys.benchmark.growth_plots import write_growth_plots
from recsys.benchmark.index_build import measure_index_build
from recsys.benchmark.index_choice import IndexCase, measure_index
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
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.memory import peak_bytes
from recsys.benchmark.next_word_perplexity import PerplexityJudge, unigram_perplexity
from recsys.benchmark.next_words import NextWordData, NextWords, prepare_next_words
from recsys.benchmark.outcome import BenchmarkOutcome
from recsys.benchmark.prepare import measure_prepare
from recsys.benchmark.resident_memory import process_peak, resident_peak
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
from recsys.benchmark.step import MERGED, STEP, StepPlan, measure_step
from recsys.benchmark.step_floor import FloorStep
from recsys.benchmark.step_inputs import (
    StepInputs,
    StepSize,
    draw_for,
    make_proposal,
    make_step_batches,
)
from recsys.benchmark.step_naive import NaiveStep
from recsys.benchmark.synthetic import make_events, zipf_counts
from recsys.benchmark.table import benchmark_table, print_benchmarks
from recsys.benchmark.train import Training, TrainPlan, measure_train
from recsys.benchmark.train_naive import NaiveSettings, NaiveTraining
from recsys.benchmark.train_peer import PeerIals, PeerSettings, peer_is_missing
from recsys.benchmark.train_plots import write_train_plots
from recsys.benchmark.train_recall import RecallJudge
from recsys.benchmark.train_result import RecallPoint, TrainResult, write_train

__all__ = [
    "MERGED",
    "STEP",
    "BenchmarkOutcome",
    "BenchmarkResult",
    "EpochRecord",
    "EstimatorRun",
    "FloorStep",
    "Growth",
    "IndexCase",
    "Job",
    "LanguageResult",
    "Learner",
    "MachineRates",
    "Measurement",
    "NaiveSettings",
    "NaiveStep",
    "NaiveTraining",
    "NextWordData",
    "NextWords",
    "PeerIals",
    "PeerSettings",
    "PerplexityJudge",
    "Ratio",
    "RecallJudge",
    "RecallPoint",
    "Sentences",
    "StepInputs",
    "StepPlan",
    "StepSize",
    "TrainPlan",
    "TrainResult",
    "Training",
    "benchmark_table",
    "draw_for",
    "growth_of",
    "language_table",
    "make_events",
    "make_proposal",
    "make_step_batches",
    "matmul_rate",
    "measure_filter",
    "measure_index",
    "measure_index_build",
    "measure_language",
    "measure_loader",
    "measure_loss",
    "measure_prepare",
    "measure_rates",
    "measure_sampler",
    "measure_search",
    "measure_step",
    "measure_train",
    "memory_ratio",
    "peak_bytes",
    "peer_is_missing",
    "prepare_next_words",
    "print_benchmarks",
    "print_language",
    "process_peak",
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
    "write_train",
    "write_train_plots",
    "zipf_counts",
]
