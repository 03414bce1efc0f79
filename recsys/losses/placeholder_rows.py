"""Catalogue rows for losses that do not ask which candidate is which."""

import torch
from torch import Tensor

from recsys.foundations import check_shape


def placeholder_rows(
    rows: Tensor | None, name: str, embeddings: Tensor, query_embeddings: Tensor
) -> Tensor:
    """Give the rows, or as many zeros, where no rows are given, as there are embeddings.

    Args:
        rows: [...], int64, or None.
        name: Of the embeddings, for the error.
        embeddings: [K, D] or [B, K, D].
        query_embeddings: [B, D].

    Returns:
        [...], int64.

    Raises:
        ShapeError: No rows are given, and the embeddings have another shape.
    """
    if rows is not None:
        return rows
    batch = query_embeddings.shape[:1] if embeddings.dim() == 3 else ()
    check_shape(name, embeddings, *batch, None, None)
    return torch.zeros(embeddings.shape[:-1], dtype=torch.int64, device=embeddings.device)
