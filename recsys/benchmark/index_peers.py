"""All indexes that `index=auto` is compared with, and which of their packages are missing.

Dimensions: C candidates, D embedding width.
"""

import importlib.util
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_asked import AskedQueries
from recsys.benchmark.index_peer import Peer, SetPeer, set_peer
from recsys.benchmark.index_peer_scann import scann_peers
from recsys.benchmark.index_peers_faiss import faiss_peers
from recsys.benchmark.index_peers_graphs import hnswlib_peers, usearch_peers

log = logging.getLogger(__name__)
_PACKAGES = {"hnswlib": "hnswlib", "usearch": "usearch", "scann": "scann-core"}  # by import


@dataclass(frozen=True, kw_only=True)
class GraphSettings:
    """How the graphs of FAISS, hnswlib and usearch are built.

    Attributes:
        m: Neighbours of a vector.
        ef_construction: Breadth of the search that places a vector.
    """

    m: int
    ef_construction: int


@dataclass(frozen=True)
class Peers:
    """The peers that meet a target, set for it.

    Attributes:
        found: In the order they were built.
        notes: Which were left out and why, a sentence each.
    """

    found: tuple[SetPeer, ...]
    notes: tuple[str, ...]


def build_peers(
    vectors: NDArray[np.float32],
    asked: AskedQueries,
    *,
    target: float,
    list_counts: tuple[int, ...],
    graphs: GraphSettings,
) -> Peers:
    """Build every peer whose package is installed, and set it for the target.

    Args:
        vectors: [C, D].
        asked: Queries that are used for nothing else.
        target: Least mean index recall.
        list_counts: Numbers of lists of FAISS's indexes with lists; each is built.
        graphs: Of the three graphs.
    """
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    found, notes = [], []
    if missing:
        packages = ", ".join(_PACKAGES[name] for name in missing)
        notes.append(
            f"{packages} left out: the extra index-peers brings "
            f"{'it' if len(missing) == 1 else 'them'}"
        )
    for name, make in _makers(vectors, asked.k, list_counts, graphs, missing):
        log.info("building and setting %s", name)
        peer = set_peer(make(), asked, target)
        if peer.found.meets:
            found.append(peer)
        else:
            notes.append(f"{name} left out: it finds {peer.found.recall:.4f} at most")
    return Peers(tuple(found), tuple(notes))


def _makers(
    vectors: NDArray[np.float32],
    k: int,
    list_counts: tuple[int, ...],
    graphs: GraphSettings,
    missing: list[str],
) -> Iterator[tuple[str, Callable[[], Peer]]]:
    built = vars(graphs)
    yield from faiss_peers(vectors, list_counts=list_counts, **built)
    if "hnswlib" not in missing:
        yield from hnswlib_peers(vectors, **built)
    if "usearch" not in missing:
        yield from usearch_peers(vectors, **built)
    if "scann" not in missing:
        yield from scann_peers(vectors, k=k)
