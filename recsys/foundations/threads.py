"""One thread count for torch, BLAS, OpenMP (FAISS among it) and Arrow."""

import os

import pyarrow as pa
import threadpoolctl
import torch

from recsys.foundations.checks import check_positive


def set_threads(num_threads: int) -> None:
    """Bound every pool of the process. Call it after the libraries are imported.

    Args:
        num_threads: At least 1.
    """
    check_positive("num_threads", num_threads)
    torch.set_num_threads(num_threads)
    pa.set_cpu_count(num_threads)
    pa.set_io_thread_count(num_threads)
    threadpoolctl.threadpool_limits(limits=num_threads)


def available_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
