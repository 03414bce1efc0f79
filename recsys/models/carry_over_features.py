"""What was learnt of features, into encoders over other vocabularies, means and bucket edges."""

import numpy as np
from torch import Tensor, nn

from recsys.data import FeatureSchema, FeatureSpec
from recsys.models.feature_encoder import (
    BagEncoder,
    CategoryEncoder,
    FeatureEncoder,
    NumberEncoder,
    VectorEncoder,
)
from recsys.models.row_match import copy_rows, match_buckets, match_values


def carry_over_features(
    encoder: FeatureEncoder, old: FeatureEncoder, schema: FeatureSchema, old_schema: FeatureSchema
) -> dict[str, str | None]:
    """Overwrite what a feature encoder has of the features that an old one read too.

    - categorical, multi: by value; a value that is new starts as unknown ones were encoded.
    - bucket: by where the bucket lies.
    - text: whole, where there are as many hash buckets; vector: whole, at the same width.
    - numeric: the direction is stretched as the standard deviation is, so that a value one unit
      larger moves the vector as far as it did.

    Args:
        encoder: Is changed in place.
        old: As it was trained.
        schema: Of the features that `encoder` may read.
        old_schema: Of those that `old` could read.

    Returns:
        For each feature that both read, None, or why it starts fresh.
    """
    specs = {spec.name: spec for spec in schema}
    old_specs = {spec.name: spec for spec in old_schema}
    old_encoders = dict(zip(old.names, old.encoders, strict=True))
    outcome: dict[str, str | None] = {}
    for name, one in zip(encoder.names, encoder.encoders, strict=True):
        if name in old_encoders:
            outcome[name] = _carry_over(one, old_encoders[name], specs[name], old_specs[name])
    return outcome


def _carry_over(new: nn.Module, old: nn.Module, spec: FeatureSpec, was: FeatureSpec) -> str | None:
    if spec.kind != was.kind:
        return f"it is {spec.kind} here, {was.kind} in the bundle"
    if spec.kind in ("text", "vector") and spec.size != was.size:
        return f"its size is {spec.size} here, {was.size} in the bundle"
    match new, old:
        case CategoryEncoder(), CategoryEncoder():
            by = match_buckets if spec.kind == "bucket" else match_values
            _copy(new.table.weight, old.table.weight, by(spec, was))
        case BagEncoder(), BagEncoder() if spec.kind == "multi":
            _copy(new.table.weight, old.table.weight, match_values(spec, was))
        case BagEncoder(), BagEncoder():
            new.table.weight.copy_(old.table.weight)
        case NumberEncoder(), NumberEncoder():
            new.direction.copy_(old.direction * (spec.scale / was.scale))
            new.missing.copy_(old.missing)
        case VectorEncoder(), VectorEncoder():
            new.linear.weight.copy_(old.linear.weight)
            new.linear.bias.copy_(old.linear.bias)
    return None


def _copy(new: Tensor, old: Tensor, old_rows: np.ndarray) -> None:
    copy_rows(new, old, old_rows, default=old[0])
