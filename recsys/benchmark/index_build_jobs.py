"""What is done with a catalogue on disk, each in a process of its own: build, load and look up.

Dimensions: C candidates, Q queries, D embedding width, k results asked for.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from recsys.benchmark.resident_memory import peak_of_this_process
from recsys.data import clustered_blocks
from recsys.foundations import Progress, held_threads, set_threads
from recsys.index import (
    FaissIndex,
    IndexSettings,
    read_index,
    read_vectors,
    write_index,
    write_vectors,
)
from recsys.metrics import overlap_at_k

VECTORS, QUERIES, INDEX = "item_vectors.npy", "queries.npy", "index.faiss"
_STATUS = Path("/proc/self/status")
_BETWEEN_SECONDS = 0.05
_ITEMS_A_CLUSTER = 100


@dataclass(frozen=True)
class Built:
    """What a build took.

    Attributes:
        seconds: By the clock, from the mapped vectors to the index in memory.
        write_seconds: To write it.
        before_bytes: Resident memory before: Python, the toolkit and what it imports.
        peak_bytes: The most at once, with all that, and with pages of the mapped vectors.
        own_bytes: Of the process's own pages, that are of no file, the most at once; 0 where the
            system does not tell.
        saved_bytes: Of the file.
    """

    seconds: float
    write_seconds: float
    before_bytes: int
    peak_bytes: int
    own_bytes: int
    saved_bytes: int


@dataclass(frozen=True)
class LookedUp:
    """What lookups in a saved index take.

    Attributes:
        load_seconds: To read it, with the lengths of all vectors.
        seconds: Of all queries, one at a time.
        recall: Mean index recall at k.
        own_bytes: The process's own pages beyond what it had before.
    """

    load_seconds: float
    seconds: float
    recall: float
    own_bytes: int


def write_catalogue(folder: Path, *, num_items: int, num_queries: int, dim: int, seed: int) -> None:
    """Write clustered vectors block by block, and queries of the same distribution."""
    blocks = clustered_blocks(
        (num_items, num_queries),
        dim=dim,
        num_clusters=max(num_items // _ITEMS_A_CLUSTER, 1),
        spread=1.0,
        seed=seed,
    )
    vectors = np.lib.format.open_memmap(
        folder / VECTORS, mode="w+", dtype=np.float32, shape=(num_items, dim)
    )
    queries, start = [], 0
    with Progress("made-up vectors", num_items, "vectors") as progress:
        for block in blocks:
            if start < num_items:
                vectors[start : start + len(block)] = block
                progress.advance(len(block))
            else:
                queries.append(block.copy())
            start += len(block)
    vectors.flush()
    write_vectors(folder / QUERIES, np.concatenate(queries))


def build_and_write(folder: Path, settings: IndexSettings, threads: int) -> Built:
    """Build an index of the vectors in a folder and write it there."""
    set_threads(threads)
    before = peak_of_this_process()
    vectors = read_vectors(folder / VECTORS)
    with _OwnPages() as own:
        started = time.perf_counter()
        index = FaissIndex.build(vectors, settings)
        built = time.perf_counter()
        write_index(folder / INDEX, index)
    return Built(
        seconds=built - started,
        write_seconds=time.perf_counter() - built,
        before_bytes=before,
        peak_bytes=peak_of_this_process(),
        own_bytes=own.most,
        saved_bytes=(folder / INDEX).stat().st_size,
    )


def load_and_look_up(folder: Path, settings: IndexSettings, k: int, threads: int) -> LookedUp:
    """Read the index, then search with one thread: a round to warm up, a round that counts."""
    set_threads(threads)
    queries, before = np.array(read_vectors(folder / QUERIES)), own_bytes()
    started = time.perf_counter()
    index = read_index(folder / INDEX, read_vectors(folder / VECTORS), settings)
    loaded = time.perf_counter() - started
    taken = 0.0
    with held_threads(1):
        for _ in range(2):
            started = time.perf_counter()
            for number in range(len(queries)):
                index.search(queries[number : number + 1], k)
            taken = time.perf_counter() - started
    held = max(own_bytes() - before, 0)
    found = index.search(queries, k).lists
    recall = overlap_at_k(found, index.exact.search(queries, k).lists, k).mean()
    return LookedUp(loaded, taken, float(recall), held)


def own_bytes() -> int:
    """Give the resident pages of this process that are of no file; 0 where the system is silent."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


class _OwnPages:
    """Watches the most that `own_bytes` gives, twenty times a second."""

    def __init__(self) -> None:
        self.most = own_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_BETWEEN_SECONDS):
            self.most = max(self.most, own_bytes())
