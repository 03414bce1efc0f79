"""Hard negatives from the model's own rankings, which are searched anew from time to time.

Dimensions: B queries, C candidates, E output width of the towers, m candidates of a list.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, FormatError, check_positive
from recsys.index import Index
from recsys.sampling import DrawRequest, HardNegativeSampler, Sample


class RefreshedHardNegatives:
    """Draw from each query's top m, in an index whose item vectors are up to n steps old.

    A checkpoint holds the item vectors of the last refresh, [C, E], so that a resumed run searches
    what the run before it searched.

    Args:
        embed: Gives the item vectors of the model of the moment: [C, E], float32.
        build_index: From item vectors to an index.
        num_sampled: Draws a query.
        num_top: m, at most C.
        refresh_steps: n, steps between refreshes.

    Raises:
        ArgumentError: One of the three numbers is below 1.
    """

    def __init__(
        self,
        embed: Callable[[], NDArray[np.float32]],
        build_index: Callable[[NDArray[np.float32]], Index],
        *,
        num_sampled: int,
        num_top: int,
        refresh_steps: int,
    ) -> None:
        check_positive("refresh_steps", refresh_steps)
        self._embed, self._build_index = embed, build_index
        self._num_top, self._refresh_steps = num_top, refresh_steps
        self._inner = HardNegativeSampler(self._search, num_sampled=num_sampled, num_top=num_top)
        self._steps = 0
        self._vectors: NDArray[np.float32] | None = None
        self._index: Index | None = None

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Draw [B, n] candidates; refresh before it where it is time.

        Raises:
            ArgumentError: There are fewer than m candidates; see also `HardNegativeSampler`.
        """
        if self._vectors is None or self._steps >= self._refresh_steps:
            self._refresh(self._embed())
            self._steps = 0
        return self._inner.sample(request, generator)

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:  # noqa: ARG002
        """Count the step."""
        self._steps += 1

    def state_dict(self) -> dict[str, Tensor]:
        """Give the steps since the last refresh, and the vectors of that refresh."""
        if self._vectors is None:
            return {}
        return {"steps": torch.tensor(self._steps), "vectors": torch.from_numpy(self._vectors)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Search again what was searched.

        Raises:
            FormatError: The state is of another sampler.
        """
        if not state:
            self._steps, self._vectors, self._index = 0, None, None
            return
        if state.keys() != {"steps", "vectors"}:
            raise FormatError(f"The checkpoint holds no hard negatives, got {sorted(state)}.")
        self._steps = int(state["steps"])
        self._refresh(state["vectors"].numpy())

    def _refresh(self, vectors: NDArray[np.float32]) -> None:
        if len(vectors) < self._num_top:
            raise ArgumentError(
                f"`num_top` must be at most the number of candidates, {len(vectors)}, "
                f"got {self._num_top}."
            )
        self._vectors, self._index = vectors, self._build_index(vectors)

    def _search(self, query_embeddings: Tensor) -> Tensor:
        if self._index is None:
            raise ArgumentError("`sample` must refresh the index before it is searched.")
        queries = query_embeddings.float().cpu().numpy()
        hits = self._index.search(np.ascontiguousarray(queries), self._num_top)
        return torch.from_numpy(hits.candidate_rows).reshape(len(queries), self._num_top)
