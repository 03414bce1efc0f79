"""Ways to find the best candidates of many queries, over one made-up catalogue.

Dimensions: B queries, C candidates, D embedding width, k results asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.benchmark.measure import Job
from recsys.foundations import Ragged, make_numpy_generator
from recsys.index import ExactIndex, FaissIndex, IndexSettings

EXACT, EXCLUDING = "exact search", "exact search, each without its seen items"
FAISS, BARE, PLAIN = "faiss IndexFlatIP", "bare product", "product and topk"
_QUERIES_AT_ONCE, _CANDIDATES_AT_ONCE = 512, 4096


@dataclass(frozen=True)
class SearchInputs:
    """Made-up vectors and queries, normally distributed.

    Attributes:
        vectors: [C, D], float32.
        queries: [B, D], float32.
        seen: B lists of rows that a query must not get.
    """

    vectors: NDArray[np.float32]
    queries: NDArray[np.float32]
    seen: Ragged

    @classmethod
    def make(
        cls, catalogue_size: int, dim: int, *, num_queries: int, num_excluded: int, seed: int
    ) -> "SearchInputs":
        """Draw them; the seen items of a query are drawn uniformly, repeats stay."""
        rng = make_numpy_generator(seed, "benchmark", "search")
        owners = np.repeat(np.arange(num_queries), num_excluded)
        return cls(
            rng.standard_normal((catalogue_size, dim), dtype=np.float32),
            rng.standard_normal((num_queries, dim), dtype=np.float32),
            Ragged.from_pairs(owners, rng.integers(0, catalogue_size, len(owners)), num_queries),
        )

    @cached_property
    def exact(self) -> ExactIndex:
        """Give the index of this project."""
        return ExactIndex(self.vectors)

    @cached_property
    def flat(self) -> Callable[..., object]:
        """Give the search of FAISS's own flat index."""
        search: Callable[..., object] = FaissIndex.build(
            self.vectors, IndexSettings(kind="flat")
        ).inner.search
        return search


def search_jobs(inputs: SearchInputs, k: int) -> dict[str, Job]:
    """Give a search of all queries in each way; every index is built before."""
    jobs: dict[str, Job] = {
        EXACT: partial(inputs.exact.search, inputs.queries, k),
        EXCLUDING: partial(inputs.exact.search, inputs.queries, k, exclude=inputs.seen),
        FAISS: partial(inputs.flat, inputs.queries, min(k, len(inputs.vectors))),
        BARE: partial(multiply, inputs),
        PLAIN: partial(multiply_and_cut, inputs, k),
    }
    return jobs


def search_exactly(k: int, inputs: SearchInputs) -> None:
    """Search all queries by the index of this project."""
    inputs.exact.search(inputs.queries, k)


def search_flat(k: int, inputs: SearchInputs) -> None:
    """Search all queries by FAISS's own flat index."""
    inputs.flat(inputs.queries, min(k, len(inputs.vectors)))


def multiply_and_cut(inputs: SearchInputs, k: int) -> tuple[Tensor, Tensor]:
    """Compute all B x C scores at once and let torch find the best."""
    scores = torch.from_numpy(inputs.queries) @ torch.from_numpy(inputs.vectors).T
    best, rows = torch.topk(scores, min(k, len(inputs.vectors)), dim=1)
    return best, rows


def multiply(inputs: SearchInputs) -> None:
    """Compute the scores in blocks, each over the one before, and look at none of them."""
    buffer = np.empty((_QUERIES_AT_ONCE, _CANDIDATES_AT_ONCE), np.float32)
    for start in range(0, len(inputs.queries), _QUERIES_AT_ONCE):
        queries = inputs.queries[start : start + _QUERIES_AT_ONCE]
        for first in range(0, len(inputs.vectors), _CANDIDATES_AT_ONCE):
            block = inputs.vectors[first : first + _CANDIDATES_AT_ONCE]
            np.matmul(queries, block.T, out=buffer[: len(queries), : len(block)])


def prepared_exact(make: Callable[[], SearchInputs]) -> SearchInputs:
    """Make inputs and the index of this project."""
    inputs = make()
    inputs.exact  # noqa: B018 - is built once
    return inputs


def prepared_flat(make: Callable[[], SearchInputs]) -> SearchInputs:
    """Make inputs and FAISS's own flat index."""
    inputs = make()
    inputs.flat  # noqa: B018
    return inputs
