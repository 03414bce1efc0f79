"""What stands for ids without a vector of their own, where training does not teach it.

Dimensions: N items, D embedding width.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import check_shape
from recsys.models.two_tower import TwoTower

_RAREST = 10  # of so many trained items, one is among the rarest


def untaught_rows(model: TwoTower, item_counts: NDArray[np.int64]) -> dict[str, Tensor]:
    """Give values for the rows of unknown ids that `id_dropout` does not train.

    An unknown item is taken to be like those that hardly anybody chose: its vector, and its bias,
    is the mean over the rarest tenth of the trained items, those with as few events as the last of
    them included. An unknown user is the mean over all users.

    Args:
        model: Its tables have learnt.
        item_counts: [N], training events of each item.

    Returns:
        [D] for each table whose last row is meant, by its name in the model's state; none where
        `id_dropout` is above 0, and none where nothing was trained.

    Raises:
        ShapeError: There is not one count an item.
    """
    check_shape("item_counts", item_counts, model.item_tower.rows.num_ids)
    means: dict[str, Tensor] = {}
    users, items = model.user_tower, model.item_tower
    if users.ids is not None and users.rows.dropout == 0 and users.rows.num_ids > 0:
        means["user_tower.ids.weight"] = users.ids.weight.detach()[:-1].mean(dim=0)
    rarest = torch.from_numpy(_rarest(item_counts, items.rows.trained.cpu().numpy()))
    if items.rows.dropout == 0 and len(rarest) > 0:
        for name, table in {"ids": items.ids, "bias": items.bias}.items():
            if table is not None:
                mean = table.weight.detach()[rarest.to(table.weight.device)].mean(dim=0)
                means[f"item_tower.{name}.weight"] = mean
    return means


@torch.no_grad()
def place_unknown_ids(model: TwoTower, item_counts: NDArray[np.int64]) -> None:
    """Overwrite the rows of unknown ids that training does not teach; see `untaught_rows`."""
    values = model.state_dict()  # shares memory with the parameters
    for name, mean in untaught_rows(model, item_counts).items():
        values[name][-1] = mean


def _rarest(item_counts: NDArray[np.int64], trained: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give the rows of the rarest tenth of the trained items; equal counts stand or fall alike."""
    counts = np.sort(item_counts[trained])
    if len(counts) == 0:
        return np.empty(0, np.int64)
    most = counts[-(-len(counts) // _RAREST) - 1]
    return np.flatnonzero(trained & (item_counts <= most))
