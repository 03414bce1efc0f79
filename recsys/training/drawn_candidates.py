"""From a draw to the embeddings that a loss needs.

Dimensions: B queries, S sampled candidates, M of them with stored vectors, E output width.
"""

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.models import TwoTower
from recsys.sampling import Draw, DrawRequest


def request_draw(batch: TrainingBatch, query_embeddings: Tensor) -> DrawRequest:
    """Say what a draw for the batch may depend on."""
    histories = batch.histories
    return DrawRequest(
        positive_rows=torch.from_numpy(batch.positives),
        last_rows=torch.from_numpy(histories[:, 0].copy()) if histories.shape[1] else None,
        query_embeddings=query_embeddings.detach(),
    )


def embed_rows(model: TwoTower, features: FeatureTable, rows: Tensor) -> Tensor:
    """Embed candidates, each distinct one once: rows of any shape give that shape and [E]."""
    unique, places = torch.unique(rows, return_inverse=True)
    embeddings = model.embed_candidates(unique, features.take(unique.numpy()))
    found = embeddings.index_select(0, places.flatten().to(embeddings.device))
    return found.reshape(*rows.shape, -1)


def embed_drawn(
    model: TwoTower, features: FeatureTable, positive_rows: Tensor, draw: Draw
) -> tuple[Tensor, Tensor]:
    """Embed the positives and the sampled candidates; the item tower meets each item once.

    Columns with stored vectors take those, without a gradient.

    Args:
        model: Whose item tower it is.
        features: A row for each candidate.
        positive_rows: [B], int64, on the CPU.
        draw: The sample.

    Returns:
        [B, E], and [S, E] or [B, S, E] as the draw's rows are; on the model's device.
    """
    num_columns = draw.rows.shape[-1]
    live = torch.arange(num_columns)
    if draw.stored is not None:
        is_live = torch.ones(num_columns, dtype=torch.bool)
        is_live[draw.stored.columns] = False
        live = live[is_live]
    live_rows = draw.rows[..., live]
    rows = torch.cat([positive_rows, live_rows.flatten()])
    positives, flat = embed_rows(model, features, rows).tensor_split([len(positive_rows)])
    sampled = flat.reshape(*live_rows.shape, -1)
    if draw.stored is None:
        return positives, sampled
    stored = draw.stored.vectors.to(flat.device).expand(*live_rows.shape[:-1], -1, -1)
    order = torch.cat([live, draw.stored.columns]).argsort().to(flat.device)
    return positives, torch.cat([sampled, stored], dim=-2).index_select(-2, order)
