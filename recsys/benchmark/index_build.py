"""The build of an index over a large catalogue that lies on disk: time, memory, size.

Dimensions: C candidates, D embedding width.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from recsys.benchmark.fresh_process import run_in_fresh_process
from recsys.benchmark.index_build_jobs import (
    Built,
    LookedUp,
    build_and_write,
    load_and_look_up,
    write_catalogue,
)
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult
from recsys.index import IndexSettings


def measure_index_build(
    *, num_items: int, dim: int, kind: str, k: int, num_queries: int, seed: int
) -> BenchmarkResult:
    """Build an index once in a fresh process, and look up in it from another.

    The vectors are made up and written block by block to a temporary folder, with the index.

    Args:
        num_items: C; 4 D bytes each in the folder, and as many again at most for the index.
        dim: D.
        kind: Of the index, with the settings it comes with.
        k: Results of a lookup.
        num_queries: Lookups, one at a time, with one thread.
        seed: Of the vectors.
    """
    threads, settings = torch.get_num_threads(), IndexSettings(kind=kind)
    with TemporaryDirectory(prefix="recsys-benchmark-") as name:
        folder = Path(name)
        write_catalogue(folder, num_items=num_items, num_queries=num_queries, dim=dim, seed=seed)
        build = partial(build_and_write, folder, settings, threads)
        built: Built = run_in_fresh_process(build, keep_memory=False)
        ask = partial(load_and_look_up, folder, settings, k, threads)
        looked_up: LookedUp = run_in_fresh_process(ask, keep_memory=False)
    return BenchmarkResult(
        "index_build",
        "an index is built from vectors in a file, which is mapped, then read by another process. "
        "Memory of the build: beyond Python and its modules, with the pages of that file; peak: "
        "with Python; own: without the file; of lookups: the process's own pages",
        {
            "num_items": num_items,
            "dim": dim,
            "kind": kind,
            "threads": threads,
            "peak_mb": round(built.peak_bytes / 1e6),
            "own_mb": round(built.own_bytes / 1e6),
            "vectors_mb": round(4 * num_items * dim / 1e6),
            "index_mb": round(built.saved_bytes / 1e6),
            "index_recall": round(looked_up.recall, 4),
        },
        {
            "build": Measurement(
                [built.seconds],
                num_items,
                "items",
                peak_bytes=max(built.peak_bytes - built.before_bytes, 0),
            ),
            "write": Measurement([built.write_seconds], num_items, "items"),
            "load": Measurement([looked_up.load_seconds], num_items, "items"),
            "lookup, one alone": Measurement(
                [looked_up.seconds],
                num_queries,
                "users",
                peak_bytes=looked_up.own_bytes,
                calls=num_queries,
            ),
        },
        (),
    )
