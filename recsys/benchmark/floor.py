"""What the machine can do at most: rates that turn a job's arithmetic into seconds."""

import functools
import mmap
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch

from recsys.foundations import check_positive, linear

_SIZE = 512  # of the square matrices whose product is timed
_COPIED = 16 * 2**20  # floats; 64 MiB, beyond the caches
_IN_CACHE = 2**18  # floats; 1 MiB, as the block of a blocked softmax
_TOUCHED = 64 * 2**20  # bytes
_TIMES = 7


@dataclass(frozen=True)
class MachineRates:
    """Rates of this machine with the threads that torch was bound to.

    Attributes:
        threads: Of torch, while the rates were taken.
        matmul_float32: Product of two square matrices, in operations a second: 2 m n k of them.
        matmul_bfloat16: Likewise with both in bfloat16.
        copy_bandwidth: Bytes copied a second into memory that is there: each is read once and
            written once.
        fresh_bandwidth: Bytes a second of memory that is new to the process, first written to:
            what a large temporary costs in page faults.
        exp_rate: Elements a second of exp on float32, in the cache.
    """

    threads: int
    matmul_float32: float
    matmul_bfloat16: float
    copy_bandwidth: float
    fresh_bandwidth: float
    exp_rate: float

    def floor_seconds(
        self,
        *,
        float32_operations: float = 0.0,
        bfloat16_operations: float = 0.0,
        copied_bytes: float = 0.0,
        exps: float = 0.0,
    ) -> float:
        """Give the seconds of a job that does nothing but this, one after another.

        Args:
            float32_operations: Of matrix products: 2 m n k each.
            bfloat16_operations: Likewise.
            copied_bytes: Read once and written once.
            exps: Elements that exp is taken of.
        """
        return (
            float32_operations / self.matmul_float32
            + bfloat16_operations / self.matmul_bfloat16
            + copied_bytes / self.copy_bandwidth
            + exps / self.exp_rate
        )

    def to_json(self) -> dict[str, float]:
        """Give plain values."""
        return asdict(self)

    def __str__(self) -> str:
        """Give a line for people."""
        return (
            f"products {self.matmul_float32 / 1e9:,.0f} GF/s in float32, "
            f"{self.matmul_bfloat16 / 1e9:,.0f} in bfloat16; "
            f"copy {self.copy_bandwidth / 1e9:,.1f} GB/s, "
            f"fresh memory {self.fresh_bandwidth / 1e9:,.1f} GB/s; "
            f"exp {self.exp_rate / 1e9:,.2f} G/s"
        )


def measure_rates() -> MachineRates:
    """Measure the rates, in about a second; once a process and thread count.

    Each is the best of a few runs: a floor is what the machine can do where nothing disturbs it.
    """
    return _measure_rates(torch.get_num_threads())


def matmul_rate(rows: int, inner: int, columns: int, dtype: torch.dtype = torch.float32) -> float:
    """Measure the product [rows, inner] x [inner, columns], by the faster of torch's libraries.

    Args:
        rows: At least 1.
        inner: At least 1; narrow products are slower than the square ones of MachineRates.
        columns: At least 1.
        dtype: Of both matrices and of their product.

    Returns:
        Operations a second, 2 * rows * inner * columns a product.
    """
    for name, value in (("rows", rows), ("inner", inner), ("columns", columns)):
        check_positive(name, value)
    left, right = torch.ones(rows, inner, dtype=dtype), torch.ones(inner, columns, dtype=dtype)
    out = torch.empty(rows, columns, dtype=dtype)
    seconds = _best_seconds(lambda: torch.mm(left, right, out=out))
    if dtype == torch.float32:
        transposed = right.T.contiguous()
        seconds = min(seconds, _best_seconds(lambda: linear(left, transposed)))
    return 2 * rows * inner * columns / seconds


@functools.cache
def _measure_rates(threads: int) -> MachineRates:
    source, target = torch.ones(_COPIED), torch.zeros(_COPIED)
    numbers, results = torch.zeros(_IN_CACHE), torch.zeros(_IN_CACHE)
    return MachineRates(
        threads=threads,
        matmul_float32=matmul_rate(_SIZE, _SIZE, _SIZE),
        matmul_bfloat16=matmul_rate(_SIZE, _SIZE, _SIZE, torch.bfloat16),
        copy_bandwidth=4 * _COPIED / _best_seconds(lambda: target.copy_(source)),
        fresh_bandwidth=_TOUCHED / _best_seconds(_touch),
        exp_rate=_IN_CACHE / _best_seconds(lambda: torch.exp(numbers, out=results)),
    )


def _touch() -> None:
    """Write to fresh pages; asked of the system itself, for malloc may hand out old ones."""
    with mmap.mmap(-1, _TOUCHED) as pages:
        view = np.frombuffer(pages, np.uint8)
        view[:: mmap.PAGESIZE] = 1
        del view  # or the pages could not be given back


def _best_seconds(job: Callable[[], object]) -> float:
    """Give the seconds of a run, the best of several, after one that does not count."""
    seconds = []
    for _ in range(1 + _TIMES):
        started = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
