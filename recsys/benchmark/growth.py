"""How a job's time and memory change with a size."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recsys.benchmark.measurement import Measurement
from recsys.foundations import ShapeError


@dataclass(frozen=True)
class Growth:
    """One line of a plot: a job over a size that was varied.

    Attributes:
        name: Of the job.
        axis: Of what varied, in words: `catalogue size`.
        sizes: Its values, rising.
        seconds: Of one call of the job at each.
        floor_seconds: Least seconds of a call by the machine's rates; None where not known.
        peak_bytes: Most memory at each; None where not taken.
        group: Lines of one group and axis share a table and a picture.

    Raises:
        ShapeError: The columns differ in length.
    """

    name: str
    axis: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    floor_seconds: Sequence[float] | None = None
    peak_bytes: Sequence[int] | None = None
    group: str = ""

    def __post_init__(self) -> None:
        """Check the lengths."""
        columns = (self.seconds, self.floor_seconds, self.peak_bytes)
        lengths = [len(column) for column in columns if column is not None]
        if any(length != len(self.sizes) for length in lengths):
            raise ShapeError(
                f"`{self.name}` must have one value for each of its {len(self.sizes)} sizes, got "
                f"{lengths}."
            )

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return asdict(self)


def at_least_two(sizes: Iterable[int]) -> list[int]:
    """Give the sizes in order, each once; none where there is one alone, which shows no growth."""
    ordered = sorted(set(sizes))
    return ordered if len(ordered) > 1 else []


def growth_of(
    name: str, axis: str, measured: Mapping[int, Measurement], *, group: str = ""
) -> Growth:
    """Make the line of one job from its measurements by size.

    Args:
        name: Of the job.
        axis: What varied, in words.
        measured: Size -> measurement; floors and peaks are taken over where all have them.
        group: Of the line.
    """
    sizes = sorted(measured)
    points = [measured[size] for size in sizes]
    floors = [one.floor_seconds for one in points if one.floor_seconds is not None]
    peaks = [one.peak_bytes for one in points if one.peak_bytes is not None]
    return Growth(
        name,
        axis,
        sizes,
        [one.seconds_a_call for one in points],
        floors if len(floors) == len(points) else None,
        peaks if len(peaks) == len(points) else None,
        group,
    )


def grouped(lines: Sequence[Growth]) -> dict[str, list[Growth]]:
    """Put lines together that share a table and a picture, in their order.

    Returns:
        What the table is of, as `by catalogue size` or `log Q by catalogue size` -> lines.
    """
    groups: dict[str, list[Growth]] = {}
    for line in lines:
        groups.setdefault(f"{line.group} by {line.axis}".strip(), []).append(line)
    return groups
