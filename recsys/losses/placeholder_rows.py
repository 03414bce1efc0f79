"""Catalogue rows for losses that do not ask which candidate is which."""

import torch
from torch import Tensor


def placeholder_rows(rows: Tensor | None, embeddings: Tensor) -> Tensor:
    """Give the rows, or as many zeros, where no rows are given, as there are embeddings.

    Args:
        rows: [...], int64, or None.
        embeddings: [..., D].

    Returns:
        [...], int64.
    """
    if rows is not None:
        return rows
    return torch.zeros(embeddings.shape[:-1], dtype=torch.int64, device=embeddings.device)
