"""Vectors of items, and of the same items with one thing hidden at a time.

Dimensions: I items, W alterations of each, E output width.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.models import TwoTower
from recsys.serving.embed_items import embed_items
from recsys.serving.hidden_features import hide_features


@dataclass(frozen=True)
class AlteredItems:
    """What the tower makes of I items without each piece, of all of them, and of none.

    Attributes:
        vectors: [I, W, E], W = pieces + 2; with the item's own bias, but for the last, of which
            nothing is known, and which has none.
        pieces: What each of the first W - 2 hides; the one behind them hides nothing.
        biases: [I]; None where the model has none.
    """

    vectors: NDArray[np.float32]
    pieces: tuple[str, ...]
    biases: NDArray[np.float32] | None


def alter_items(bundle: Bundle, rows: NDArray[np.int64]) -> AlteredItems:
    """Hide one thing after the other from the item tower.

    Args:
        bundle: Gives the tower and the features.
        rows: [I], candidates.
    """
    model = bundle.model
    pieces = _pieces(model)
    num = len(pieces) + 2
    hides = {piece: np.zeros((len(rows), num), np.bool_) for piece in pieces}
    for place, piece in enumerate(pieces):
        hides[piece][:, [place, num - 1]] = True
    repeated = np.repeat(rows, num)
    without_id = hides.get("id", np.zeros((len(rows), num), np.bool_)).reshape(-1)
    features = hide_features(
        bundle.items.features.take(repeated),
        {
            name.removeprefix("features."): where.reshape(-1)
            for name, where in hides.items()
            if name != "id"
        },
    )
    vectors = embed_items(model, np.where(without_id, -1, repeated), features)
    vectors = vectors.reshape(len(rows), num, model.output_dim)
    bias = model.bias_place
    if bias is None:
        return AlteredItems(vectors, pieces, None)
    biases = np.asarray(bundle.item_vectors[rows])[:, bias]
    vectors[:, :-1, bias], vectors[:, -1, bias] = biases[:, None], 0
    return AlteredItems(vectors, pieces, biases)


def _pieces(model: TwoTower) -> tuple[str, ...]:
    tower = model.item_tower
    pieces = ["id"] if tower.ids is not None else []
    return (*pieces, *(f"features.{name}" for name in tower.features.names))
