"""Vectors of items that need not be candidates.

Dimensions: N items, E output width.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.data import FeatureTable
from recsys.models import TwoTower

_EMBEDDED_AT_ONCE = 512


def embed_items(
    model: TwoTower, rows: NDArray[np.int64], features: FeatureTable
) -> NDArray[np.float32]:
    """Embed items in blocks padded to one size: [N, E], float32.

    Args:
        model: In evaluation mode.
        rows: [N]; -1: an item that the model does not know.
        features: N rows.
    """
    blocks = [np.zeros((0, model.output_dim), np.float32)]
    with torch.no_grad():
        for start in range(0, len(rows), _EMBEDDED_AT_ONCE):
            places = np.arange(start, start + _EMBEDDED_AT_ONCE)
            places = np.where(places < len(rows), places, -1)
            padded = np.where(places < 0, -1, rows[places])
            block = model.embed_candidates(padded, features.take(places)).cpu().numpy()
            blocks.append(block[: len(rows) - start])
    return np.concatenate(blocks)
