"""From a draw to the embeddings that a loss needs.

Dimensions: B queries, S sampled candidates, M of them with stored vectors, E output width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.losses import PlacedEmbeddings, SampledEmbeddings
from recsys.models import GroupedRows, TwoTower
from recsys.sampling import Draw, DrawRequest, StoredVectors


def request_draw(batch: TrainingBatch, query_embeddings: Tensor) -> DrawRequest:
    """Say what a draw for the batch, which has a query for each positive, may depend on."""
    knows_items = batch.histories.shape[1] > 0
    return DrawRequest(
        positive_rows=torch.from_numpy(batch.positives),
        last_rows=torch.from_numpy(batch.newest_items()) if knows_items else None,
        query_embeddings=query_embeddings.detach(),
        groups=torch.from_numpy(batch.positive_users) if batch.is_grouped else None,
    )


def embed_rows(model: TwoTower, features: FeatureTable, rows: Tensor) -> Tensor:
    """Embed candidates, each distinct one once: rows of any shape give that shape and [E]."""
    groups = GroupedRows.of(rows.flatten())
    embeddings = model.embed_candidates(groups.rows, features.take(groups.rows.numpy()))
    return groups.to(embeddings.device).spread(embeddings).reshape(*rows.shape, -1)


@dataclass(frozen=True)
class EmbeddedDraw:
    """The embeddings of a draw, on the model's device.

    Attributes:
        positives: [B, E].
        sampled: Of every column: [S, E] where the queries share them all, else a pair: [S1, E] of
            the columns that they share, and the places [B, S - S1] of the others.
        live: Likewise, without the columns that have stored vectors; those of `Draw.live`.
    """

    positives: Tensor
    sampled: SampledEmbeddings
    live: SampledEmbeddings


def embed_drawn(
    model: TwoTower, features: FeatureTable, positive_rows: Tensor, draw: Draw
) -> EmbeddedDraw:
    """Embed the positives and the sampled candidates; the item tower meets each item once.

    Columns with stored vectors take those, without a gradient; columns that the queries share are
    not embedded once a query.

    Args:
        model: Whose item tower it is.
        features: A row for each candidate.
        positive_rows: [B], int64, on the CPU.
        draw: The sample; its stored columns are among the shared ones.
    """
    shared_rows, own_rows = draw.rows, None
    if draw.rows.ndim == 2:
        shared_rows, own_rows = draw.rows[0, : draw.num_shared], draw.rows[:, draw.num_shared :]
    is_live = torch.ones(len(shared_rows), dtype=torch.bool)
    if draw.stored is not None:
        is_live[draw.stored.columns] = False
    rows = [positive_rows, shared_rows[is_live]]
    sizes = [len(part) for part in rows]
    if own_rows is None:
        positives, live = embed_rows(model, features, torch.cat(rows)).split(sizes)
        shared = live if draw.stored is None else _insert(live, is_live, draw.stored)
        return EmbeddedDraw(positives, shared, live)
    groups = GroupedRows.of(torch.cat([*rows, own_rows.flatten()]))
    vectors = model.embed_candidates(groups.rows, features.take(groups.rows.numpy()))
    places = groups.places().to(vectors.device)
    first, rest = places.tensor_split([sum(sizes)])
    positives, live = vectors.index_select(0, first).split(sizes)
    shared = live if draw.stored is None else _insert(live, is_live, draw.stored)
    own = PlacedEmbeddings(vectors, rest.reshape(own_rows.shape))
    return EmbeddedDraw(positives, (shared, own), (live, own))


def _insert(live: Tensor, is_live: Tensor, stored: StoredVectors) -> Tensor:
    """Put live and stored vectors where their columns are: [S1, E]."""
    columns = torch.cat([is_live.nonzero().squeeze(1), stored.columns])
    vectors = torch.cat([live, stored.vectors.to(live)])
    return vectors.index_select(0, columns.argsort().to(live.device))
