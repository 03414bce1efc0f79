"""All that one run of the benchmarks measured, and where it goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recsys.benchmark.floor import MachineRates
from recsys.benchmark.growth_plots import write_growth_plots
from recsys.benchmark.language_plots import write_language_plots
from recsys.benchmark.language_result import LanguageResult, write_language
from recsys.benchmark.language_table import print_language
from recsys.benchmark.markdown import write_markdown
from recsys.benchmark.result import BenchmarkResult, write_benchmarks
from recsys.benchmark.table import print_benchmarks
from recsys.benchmark.train_plots import write_train_plots
from recsys.benchmark.train_result import TrainResult, write_train


@dataclass(frozen=True)
class BenchmarkOutcome:
    """What was measured.

    Attributes:
        rates: Times and memory against what they are compared with; empty if none was asked for.
        language: The next-word experiment; None if it was not asked for.
        machine: What the machine can do, taken in the same run; None if no rates were asked for.
        training: Whole trainings, whose rates are among the others; None if not asked for.
    """

    rates: Sequence[BenchmarkResult]
    language: LanguageResult | None
    machine: MachineRates | None = None
    training: TrainResult | None = None

    def write(self, folder: Path) -> list[Path]:
        """Write everything that was measured.

        Rates go to `benchmark.json`, `benchmark.md` and a picture for each size that was varied,
        the recall of whole trainings to `train.json`, the next-word experiment to `language.json`,
        both with pictures.

        Returns:
            The paths written.
        """
        paths = []
        if self.rates:
            paths += [folder / "benchmark.json", folder / "benchmark.md"]
            write_benchmarks(self.rates, paths[0], self.machine)
            write_markdown(self.rates, paths[1], self.machine)
            paths += write_growth_plots(self.rates, folder)
        if self.training is not None:
            paths.append(folder / "train.json")
            write_train(self.training, paths[-1])
            paths += write_train_plots(self.training, folder)
        if self.language is not None:
            paths.append(folder / "language.json")
            write_language(self.language, paths[-1])
            paths += write_language_plots(self.language, folder)
        return paths

    def print(self) -> None:
        """Print tables of each."""
        if self.rates:
            print_benchmarks(self.rates, self.machine)
        if self.training is not None:
            print(self.training.sentence())  # noqa: T201 - what the command is asked for
        if self.language is not None:
            print_language(self.language)
