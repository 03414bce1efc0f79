"""The positives of the last steps as candidates, with the vectors that they had then.

Dimensions: B positives in a step, M entries held, E output width of the tower.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import (
    FormatError,
    check_count,
    check_floats,
    check_integers,
    check_shape,
)
from recsys.sampling.draw import DrawRequest, Sample, StoredVectors
from recsys.sampling.popularity_estimate import Popularity
from recsys.sampling.saved_state import check_state_names


class MemorySampler:
    """Take the positives of earlier steps, newest last; nothing is drawn and no tower runs again.

    The entries carry copies of their vectors, which get no gradient and are as stale as they are
    old: `size` and `max_age` bound both memory and staleness. M positives of the loader hold a
    candidate as often as its rate says, so that is its Q, with the M of the moment; an empty
    queue has S = 0 and Q = 0, and is of use only in a mixture.

    Args:
        popularity: The rate at which the loader emits each candidate. It is only read: whoever
            owns it updates it and keeps its state.
        size: The most entries held; the oldest leave first.
        max_age: The most steps between the step that computed a vector and one that uses it; 1
            keeps the step before only.
        embedding_dim: E.

    Raises:
        ArgumentError: One of the three numbers is no whole number from 1 on.

    Source:
        "Cross-batch memory for embedding learning", CVPR 2020; as candidates of a retrieval model
        with their log Q in "Cross-batch negative sampling for training two-tower recommenders",
        SIGIR 2021.
    """

    def __init__(
        self, popularity: Popularity, *, size: int, max_age: int, embedding_dim: int
    ) -> None:
        check_count("size", size)
        check_count("max_age", max_age)
        check_count("embedding_dim", embedding_dim)
        self._popularity, self._size, self._max_age = popularity, size, max_age
        # Replaced by each update, never changed in place: a sample keeps what it was given.
        self._rows = torch.zeros(0, dtype=torch.int64)
        self._ages = torch.zeros(0, dtype=torch.int64)  # steps, at the next use
        self._vectors = torch.zeros(0, embedding_dim)

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:  # noqa: ARG002
        """Give the entries held now: [M], oldest first, all with their stored vectors."""
        held = len(self._rows)
        return Sample(
            rows=self._rows,
            log_expected_count=lambda rows: self._popularity.log_rate(rows, held),
            expected_size=held,
            stored=StoredVectors(torch.arange(held), self._vectors),
        )

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Let the step's positives in, and those out that are too old or too many.

        Args:
            positive_rows: [B], int64.
            positive_embeddings: [B, E], float; the queue takes up its dtype and device.
        """
        check_shape("positive_rows", positive_rows, None)
        batch = len(positive_rows)
        check_shape("positive_embeddings", positive_embeddings, batch, self._vectors.shape[1])
        check_integers("positive_rows", positive_rows)
        check_floats("positive_embeddings", positive_embeddings)
        new = positive_embeddings.detach()
        ages = torch.cat([self._ages + 1, torch.ones(batch, dtype=torch.int64)])
        stale = int((ages > self._max_age).sum())  # ages never rise along the queue
        kept = slice(max(stale, len(ages) - self._size), None)
        self._ages = ages[kept].clone()
        self._rows = torch.cat([self._rows, positive_rows])[kept].clone()
        self._vectors = torch.cat([self._vectors.to(new), new])[kept].clone()

    def state_dict(self) -> dict[str, Tensor]:
        """Give the entries: rows [M], ages in steps [M], vectors [M, E]."""
        return {"rows": self._rows, "ages": self._ages, "vectors": self._vectors}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the entries; their vectors stay on the device they come on up to the next update.

        Raises:
            FormatError: They are of another width, more than `size`, or older than `max_age`.
        """
        check_state_names(state, self.state_dict())
        rows, ages, vectors = state["rows"], state["ages"], state["vectors"]
        held, width = len(rows), self._vectors.shape[1]
        if held > self._size or ages.shape != (held,) or vectors.shape != (held, width):
            raise FormatError(
                f"The checkpoint's memory must hold at most {self._size} rows, each with an age "
                f"and a vector of {width}, got {held} rows, ages {list(ages.shape)} and vectors "
                f"{list(vectors.shape)}."
            )
        if (ages > self._max_age).any():
            raise FormatError(
                f"The checkpoint's memory must hold ages up to {self._max_age}, "
                f"got {int(ages.max())}."
            )
        self._rows, self._ages, self._vectors = rows.clone(), ages.clone(), vectors.clone()
