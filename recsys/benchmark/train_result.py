"""What the benchmark of whole trainings came to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.benchmark.result import BenchmarkResult
from recsys.foundations import write_json

FORMAT = "recsys-benchmark-train"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class RecallPoint:
    """How well a training ranks after an epoch.

    Attributes:
        epoch: From 1.
        seconds: Of training up to its end; judging is not among them.
        recall: 0 to 1.
    """

    epoch: int
    seconds: float
    recall: float


@dataclass(frozen=True)
class TrainResult:
    """What was measured.

    Attributes:
        rates: Times, memory and ratios.
        k: Length of the lists that are judged.
        points: The profile tower after each epoch; empty where there is no one to judge by.
        target: The peer's recall; None without a peer.
        reached: The first epoch that is at least as good; None: none is.
    """

    rates: BenchmarkResult
    k: int
    points: tuple[RecallPoint, ...]
    target: float | None
    reached: int | None

    def to_json(self) -> dict[str, Any]:
        """Give plain values; the rates are in a file of their own."""
        return {
            "k": self.k,
            "target": self.target,
            "reached": self.reached,
            "points": [vars(point) for point in self.points],
        }

    def sentence(self) -> str:
        """Say how the towers stand against the peer."""
        best = max((point.recall for point in self.points), default=None)
        if best is None:
            return "Nobody was held out, so that no recall is measured."
        if self.target is None:
            return f"Recall@{self.k} of the profile tower: {best:.4f}; there is no peer's."
        if self.reached is None:
            return (
                f"The profile tower stays below implicit's recall@{self.k} of {self.target:.4f}: "
                f"at best {best:.4f}."
            )
        point = self.points[self.reached - 1]
        return (
            f"The profile tower passes implicit's recall@{self.k} of {self.target:.4f} with "
            f"{point.recall:.4f} after epoch {point.epoch}; at best it has {best:.4f}."
        )


def write_train(result: TrainResult, path: Path) -> None:
    """Write the recall by epoch, atomically, as JSON."""
    write_json(path, {"format": FORMAT, "format_version": FORMAT_VERSION} | result.to_json())
