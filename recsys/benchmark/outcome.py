"""All that one run of the benchmarks measured, and where it goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recsys.benchmark.language_plots import write_language_plots
from recsys.benchmark.language_result import LanguageResult, write_language
from recsys.benchmark.language_table import print_language
from recsys.benchmark.result import BenchmarkResult, write_benchmarks
from recsys.benchmark.table import print_benchmarks


@dataclass(frozen=True)
class BenchmarkOutcome:
    """What was measured.

    Attributes:
        rates: Times and memory against what they are compared with; empty if none was asked for.
        language: The next-word experiment; None if it was not asked for.
    """

    rates: Sequence[BenchmarkResult]
    language: LanguageResult | None

    def write(self, folder: Path) -> list[Path]:
        """Write `benchmark.json`, and `language.json` with its pictures; give their paths."""
        paths = []
        if self.rates:
            paths.append(folder / "benchmark.json")
            write_benchmarks(self.rates, paths[-1])
        if self.language is not None:
            paths.append(folder / "language.json")
            write_language(self.language, paths[-1])
            paths += write_language_plots(self.language, folder)
        return paths

    def print(self) -> None:
        """Print a table of each."""
        if self.rates:
            print_benchmarks(self.rates)
        if self.language is not None:
            print_language(self.language)
