"""Candidates of each query's own, many of them the same.

Dimensions: B queries, S candidates a query, K different candidates in all, D embedding width.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from recsys.foundations import check_integers, check_shape
from recsys.losses.gathered_scores import gathered_scores
from recsys.losses.softmax_core import widen


@dataclass(frozen=True)
class PlacedEmbeddings:
    """Which of K vectors each query has, so that they are not copied for each query.

    Attributes:
        vectors: [K, D], float.
        places: [B, S], int64, in [0, K); repeats are allowed.
    """

    vectors: Tensor
    places: Tensor

    def check(self, name: str, *shape: int) -> None:
        """Check the shape that [B, S, D] copies would have.

        Raises:
            ShapeError: It differs from `shape`.
            ArgumentError: The places are no integers.
        """
        check_shape(f"{name}.places", self.places, *shape[:2])
        check_shape(f"{name}.vectors", self.vectors, None, shape[2])
        check_integers(f"{name}.places", self.places)

    def widened(self) -> Self:
        """Give half-precision vectors in float32."""
        return replace(self, vectors=widen(self.vectors))

    def detached(self) -> Self:
        """Give the same without a gradient."""
        return replace(self, vectors=self.vectors.detach())

    def scores(self, query_embeddings: Tensor) -> Tensor:
        """Compute the inner products of the queries [B, D] with theirs: [B, S]."""
        return gathered_scores(query_embeddings, self.vectors, self.places)

    def sum(self, weights: Tensor) -> Tensor:
        """Add up each query's vectors by weights [B, S], which get no gradient: [B, D]."""
        batch, width = self.places.shape
        # Flat, as torch refuses rows of no place.
        return functional.embedding_bag(
            self.places.flatten(),
            self.vectors,
            torch.arange(batch, device=self.places.device) * width,
            mode="sum",
            per_sample_weights=weights.flatten(),
        )
