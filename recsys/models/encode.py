"""Embeddings for search: the same bytes however the work is cut into batches.

A row's embedding may depend in its last bits on the shape of the matrices it is computed in. So
every block has the same shape here, the last one padded with rows about which nothing is known.

Dimensions: N rows, M interests, E output width.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.data import FeatureTable
from recsys.foundations import Progress, ShapeError, check_positive
from recsys.models.fixed_blocks import BLOCK_SIZE, fixed_blocks
from recsys.models.inputs import QueryInputs
from recsys.models.two_tower import TwoTower


def encode_queries(
    model: TwoTower, inputs: QueryInputs, *, block_size: int = BLOCK_SIZE
) -> NDArray[np.float32]:
    """Embed queries without training: [N, E], with M interests [N, M, E], float32.

    Args:
        model: Is left in the mode it was in.
        inputs: N queries, without places.
        block_size: Queries embedded at once.
    """
    check_positive("block_size", block_size)
    inputs = inputs.with_history_length(model.history_length)
    many = (model.num_interests,) if model.num_interests > 1 else ()
    embeddings = np.empty((len(inputs), *many, model.output_dim), dtype=np.float32)
    with inference(model):
        for start, rows in fixed_blocks(len(inputs), block_size):
            block = model.embed_queries(inputs.take(rows)).cpu().numpy()
            embeddings[start : start + block_size] = block[: len(inputs) - start]
    return embeddings


def encode_candidates(
    model: TwoTower, features: FeatureTable, num_items: int, *, block_size: int = BLOCK_SIZE
) -> NDArray[np.float32]:
    """Embed the candidates 0, 1, ... without training: [num_items, E], float32.

    Args:
        model: Is left in the mode it was in.
        features: Row i is that of candidate i; rows beyond num_items are not read.
        num_items: Candidates.
        block_size: Candidates embedded at once.

    Raises:
        ShapeError: There are fewer rows of features than candidates.
    """
    check_positive("block_size", block_size)
    if len(features) < num_items:
        raise ShapeError(f"`features` must have at least {num_items} rows, got {len(features)}.")
    embeddings = np.empty((num_items, model.output_dim), dtype=np.float32)
    with inference(model), Progress("embedding items", num_items, "items") as progress:
        for start, rows in fixed_blocks(num_items, block_size):
            block = model.embed_candidates(rows, features.take(rows)).cpu().numpy()
            embeddings[start : start + block_size] = block[: num_items - start]
            progress.advance(min(block_size, num_items - start))
    return embeddings


@contextmanager
def inference(model: TwoTower) -> Iterator[None]:
    """Leave training for a while, without gradients; the model returns to the mode it was in."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
