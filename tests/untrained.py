"""A bundle of untrained towers over a prepared dataset, as lookups need no good model."""

from pathlib import Path
from typing import Any

import torch

from recsys.bundle import Bundle, read_bundle, write_bundle
from recsys.data import read_prepared
from recsys.index import IndexSettings, build_main
from recsys.models import ModelSpec, build_two_tower, encode_candidates


def write_untrained(
    path: Path,
    dataset: Path,
    index: IndexSettings | None = None,
    *,
    random_bias: bool = False,
    **spec: Any,
) -> Bundle:
    """Write and read a bundle.

    Args:
        path: Its folder.
        dataset: The prepared one.
        index: None: a flat index.
        random_bias: Whether the items' biases differ, where the model has them.
        spec: Of the model.
    """
    data = read_prepared(dataset)
    torch.manual_seed(0)
    model = build_two_tower(
        ModelSpec(init_std=0.5, **spec),
        num_users=data.num_users,
        num_items=data.num_items,
        user_schema=data.users.features.schema,
        item_schema=data.items.features.schema,
        context_schema=data.context_schema,
        item_counts=data.items.counts[: data.num_items],
    )
    if random_bias and model.item_tower.bias is not None:
        torch.nn.init.normal_(model.item_tower.bias.weight)
    model.item_features = data.items.features
    vectors = encode_candidates(model, data.items.features, data.num_items)
    write_bundle(
        path,
        model=model,
        dataset=data,
        item_vectors=vectors,
        index=build_main(vectors, index or IndexSettings()),
        config={},
        scores={},
        provenance={},
    )
    return read_bundle(path)
