"""From a model's specification and what the data holds to the two towers."""

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.data import FeatureSchema, FeatureTable
from recsys.foundations import check_shape
from recsys.models.ridge_part import RidgePart
from recsys.models.spec import ModelSpec
from recsys.models.towers import ItemTower, UserTower
from recsys.models.two_tower import TwoTower


def build_two_tower(
    spec: ModelSpec,
    *,
    num_users: int,
    num_items: int,
    user_schema: FeatureSchema,
    item_schema: FeatureSchema,
    context_schema: FeatureSchema,
    item_counts: NDArray[np.int64] | None = None,
    item_features: FeatureTable | None = None,
    sparse: bool = True,
) -> TwoTower:
    """Build a model; its first values come from torch's global generator.

    The factors of a ridge part are zeros until `RidgePart.set_item_factors`.

    Args:
        spec: What it is made of.
        num_users: Users with a row of their own.
        num_items: Candidates, each with a row of its own.
        user_schema: The user features that the data holds.
        item_schema: The item features that the data holds.
        context_schema: The columns of the interaction itself that the data holds.
        item_counts: [num_items], training events of each item. One without any is embedded by its
            features and the vector of unknown items, and is left out of histories, unless these
            read the item tower. None: every item has its own vector. Which ones have is part of the
            model's state, so that this need not be given where saved values are loaded.
        item_features: As `TwoTower` has them.
        sparse: Whether the gradients of embedding tables are sparse.

    Raises:
        ConfigError: A feature is named that the data lacks, or a tower has nothing to read.
    """
    trained = torch.ones(num_items, dtype=torch.bool)
    if item_counts is not None:
        check_shape("item_counts", item_counts, num_items)
        trained = torch.from_numpy(np.asarray(item_counts) > 0)
    user_tower = UserTower(
        spec,
        num_users=num_users,
        trained_items=trained,
        features=user_schema,
        context=context_schema,
        sparse=sparse,
    )
    item_tower = ItemTower(
        spec, num_items=num_items, features=item_schema, trained=trained, sparse=sparse
    )
    ridge = None
    if spec.ridge_dim > 0:
        ridge = RidgePart(
            num_items,
            spec.ridge_dim,
            regularization=spec.ridge_regularization,
            unobserved=spec.ridge_unobserved,
            scale=spec.ridge_scale,
        )
    return TwoTower(spec, user_tower, item_tower, ridge, item_features)
