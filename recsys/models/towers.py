"""The user tower and the item tower: pieces of width D, put together, then a few layers.

Dimensions: B rows, L items in a history, D embedding width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.data import FeatureSchema, FeatureSpec, FeatureTable
from recsys.foundations import ConfigError, has_fast_linear
from recsys.models.build_history import build_history
from recsys.models.embeddings import EmbeddingTable, IdRows
from recsys.models.feature_encoder import FeatureEncoder
from recsys.models.history_encoder import ItemTable, QueryPlaces
from recsys.models.linear_layer import Linear
from recsys.models.mlp import build_mlp
from recsys.models.spec import ModelSpec
from recsys.models.tower_spec import ItemTowerSpec, UserTowerSpec

_MULTIPLE = 64  # of rows that go through the layers at once in training


class UserTower(nn.Module):
    """Id, features, context and history of a user as one vector.

    Args:
        spec: The model; `spec.user_tower` is what is built here.
        num_users: Users with a row of their own.
        trained_items: [num_items], bool, items that occur in training.
        features: Schema of the user features.
        context: Schema of the interaction's own columns.
        sparse: Whether the gradients of embedding tables are sparse.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        num_users: int,
        trained_items: Tensor,
        features: FeatureSchema,
        context: FeatureSchema,
        sparse: bool,
    ) -> None:
        super().__init__()
        tower, dim, init_std = spec.user_tower, spec.embedding_dim, spec.init_std
        self.rows = IdRows(
            num_users, dropout=tower.id_dropout, trained=torch.ones(num_users, dtype=torch.bool)
        )
        self.ids = _build_ids(num_users, dim, init_std, sparse) if tower.use_id else None
        read = _select(features, tower.features, "model.user_tower.features")
        read_context = _select(context, tower.context, "model.user_tower.context")
        self.features = _build_features(read, tower, dim, init_std, sparse)
        self.context = _build_features(read_context, tower, dim, init_std, sparse)
        self.history = build_history(tower, dim, init_std, trained=trained_items, sparse=sparse)
        self.history_table = None
        if self.history is not None and tower.history_table == "own":
            self.history_table = EmbeddingTable(
                len(trained_items), dim, init_std=init_std, sparse=sparse
            )

        num_pieces = tower.use_id + len(read) + len(read_context) + (self.history is not None)
        if num_pieces == 0:
            raise ConfigError(
                "The user tower has nothing to read: set at least one of model.user_tower.use_id, "
                "model.user_tower.features, model.user_tower.context and "
                "model.user_tower.history.encoder to what the data holds."
            )
        self.combine = Combine(tower, num_pieces, dim)

    def forward(
        self,
        rows: Tensor,
        features: FeatureTable,
        context: FeatureTable,
        *,
        histories: Tensor,
        known: Tensor,
        times: Tensor | None,
        places: QueryPlaces | None,
        item_table: ItemTable | None,
    ) -> Tensor:
        """Embed users.

        Args:
            rows: [B], int64, -1 or num_users and above: unknown.
            features: B rows.
            context: B rows.
            histories: [B, L], int64, item rows, newest first; [R, L] with places.
            known: As `histories`, bool, which of its entries are items with a vector.
            times: As `histories`, int64, µs, when they were met; None: not known of any.
            places: Where the B queries stand in R histories; None: each has its own.
            item_table: What the item tower lends to a history without a table of its own.

        Returns:
            [B, D], with M interests [B, M, D]: what else is read belongs to each of them.
        """
        pieces = [] if self.ids is None else [self.ids(self.rows(rows))]
        pieces += self.features(features, rows.device)
        pieces += self.context(context, rows.device)
        if self.history is not None:
            table = item_table if self.history_table is None else self.history_table
            read = self.history(histories, known, table, times=times, places=places)
            pieces = [piece.unsqueeze(1) for piece in pieces] if read.dim() > 2 else pieces
            pieces.append(read)
        return self.combine(pieces)  # type: ignore[no-any-return]


class ItemTower(nn.Module):
    """Id and features of an item as one vector.

    Args:
        spec: The model; `spec.item_tower` is what is built here.
        num_items: Items with a row of their own.
        features: Schema of the item features.
        trained: [num_items], bool, items that occur in training.
        sparse: Whether the gradients of embedding tables are sparse.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        num_items: int,
        features: FeatureSchema,
        trained: Tensor,
        sparse: bool,
    ) -> None:
        super().__init__()
        tower, dim, init_std = spec.item_tower, spec.embedding_dim, spec.init_std
        self.rows = IdRows(num_items, dropout=tower.id_dropout, trained=trained)
        self.ids = _build_ids(num_items, dim, init_std, sparse) if tower.use_id else None
        read = _select(features, tower.features, "model.item_tower.features")
        self.features = _build_features(read, tower, dim, init_std, sparse)
        # Biases start at zero: at first no item is preferred.
        self.bias = None
        if spec.item_bias:
            self.bias = EmbeddingTable(num_items + 1, 1, init_std=0.0, sparse=sparse)
        if not tower.use_id and not read:
            raise ConfigError(
                "The item tower has nothing to read: set at least one of model.item_tower.use_id "
                "and model.item_tower.features to what the data holds; features of items are "
                "columns of dataset.items=FILE."
            )
        self.combine = Combine(tower, tower.use_id + len(read), dim)

    def forward(self, rows: Tensor, features: FeatureTable) -> tuple[Tensor, Tensor | None]:
        """Embed items.

        Args:
            rows: [B], int64, -1 or num_items and above: unknown.
            features: B rows.

        Returns:
            [B, D], and the biases [B, 1] if the tower has them.
        """
        table_rows = self.rows(rows)  # one draw of dropout for the vector and the bias
        pieces = [] if self.ids is None else [self.ids(table_rows)]
        pieces += self.features(features, rows.device)
        bias = None if self.bias is None else self.bias(table_rows)
        return self.combine(pieces), bias


class Combine(nn.Module):
    """Sum or concatenate pieces, then the layers on top.

    Concatenated pieces go through at least one linear layer, which brings them back to width D;
    one piece alone does so too, so that features may come and go.

    Args:
        spec: The tower's settings.
        num_pieces: Pieces of width D that enter.
        dim: D.
    """

    def __init__(self, spec: UserTowerSpec | ItemTowerSpec, num_pieces: int, dim: int) -> None:
        super().__init__()
        self.concat = spec.combine == "concat"
        width = dim * num_pieces if self.concat else dim
        self.layers = build_mlp(width, spec.hidden, dim, norm=spec.norm, dropout=spec.dropout)
        if self.concat and len(self.layers) == 0:
            self.layers = nn.Sequential(Linear(width, dim))
        # Normalisation over a batch would count rows that fill it up, dropout draw for them.
        takes_more = spec.norm != "batch_norm" and spec.dropout == 0
        self._fills_up = takes_more and len(self.layers) > 0

    def forward(self, pieces: list[Tensor]) -> Tensor:
        """Combine pieces of [B, D], or of [B, 1, D] and [B, M, D]: the widest of these shapes."""
        shapes = {piece.shape for piece in pieces}
        shape = shapes.pop() if len(shapes) == 1 else torch.broadcast_shapes(*shapes)
        if self.concat:
            combined = torch.cat([piece.expand(shape) for piece in pieces], dim=-1)
        else:
            combined = pieces[0]
            for piece in pieces[1:]:
                combined = combined + piece
        # Batch normalisation takes no more than two dimensions.
        rows = combined.flatten(0, -2)
        if self.training and self._fills_up and has_fast_linear(rows):
            # Products of a few sizes, and not of one more with each batch.
            filled = functional.pad(rows, (0, 0, 0, -len(rows) % _MULTIPLE))
            return self.layers(filled)[: len(rows)].view(shape)  # type: ignore[no-any-return]
        return self.layers(rows).view(shape)  # type: ignore[no-any-return]


def _build_ids(num_ids: int, dim: int, init_std: float, sparse: bool) -> EmbeddingTable:
    return EmbeddingTable(num_ids + 1, dim, init_std=init_std, sparse=sparse)


def _build_features(
    specs: list[FeatureSpec],
    tower: UserTowerSpec | ItemTowerSpec,
    dim: int,
    init_std: float,
    sparse: bool,
) -> FeatureEncoder:
    return FeatureEncoder(
        specs,
        dim,
        dropout=tower.feature_dropout,
        value_dropout=tower.value_dropout,
        init_std=init_std,
        sparse=sparse,
    )


def _select(schema: FeatureSchema, names: tuple[str, ...] | None, key: str) -> list[FeatureSpec]:
    """Pick features by name, in the order named; None picks all."""
    held = {spec.name: spec for spec in schema.specs}
    unknown = [name for name in names or () if name not in held]
    if unknown:
        there = ", ".join(held) if held else "none at all"
        raise ConfigError(f"{key} names {unknown[0]!r}, but the data holds {there}.")
    return list(held.values()) if names is None else [held[name] for name in names]
