"""Tables of item features that begin where latent semantic analysis puts their values.

Dimensions: N training items, V tokens (of one feature, or of all), D embedding width, R rank.
"""

import logging
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from recsys.data import (
    TOKEN_KINDS,
    FeatureSpec,
    FeatureTable,
    count_tokens,
    inverse_frequencies,
    unit_rows,
)
from recsys.foundations import ConfigError, Ragged, ShapeError
from recsys.models.feature_encoder import BagEncoder, CategoryEncoder
from recsys.models.leading_directions import leading_directions
from recsys.models.two_tower import TwoTower

log = logging.getLogger(__name__)
_SMALL = 0.1  # of the random values, in columns beyond the rank


@torch.no_grad()
def start_at_content(model: TwoTower, features: FeatureTable) -> None:
    """Let the tables of the item features begin at the latent semantic analysis of the items.

    Each value of a feature of one of the `TOKEN_KINDS` is a token, and its weight in an item is

        share of the item's values in that feature · mean number of values · ln(N / items with it),

    where the mean is over the items that have the feature. This is TF-IDF with every list brought
    to the mean length, since the tower takes the mean of a list. Of the [N, V] matrix of the items
    with training events, its rows brought to length 1, the D leading right singular vectors are the
    directions of the tokens. A token's row begins at mean · ln(...) · direction, so that the sum of
    an item's features is its weights in those directions, times one number: the one that gives
    these sums the root mean square length that they have at random values.

    Tokens of no training item begin at zeros, for nothing is known of them. What stands for unknown
    and missing values begins at a tenth of its random values, and so do the columns beyond the
    rank: nearly nothing, but training can move it, which zeros with a length to be brought to 1
    would make a matter of chance. Features that are numbers or vectors keep their random values.

    Args:
        model: With random values.
        features: Row i is that of item i; rows beyond the model's items are not read.

    Raises:
        ConfigError: The item tower reads no feature of those kinds, or none that tells items apart.
        ShapeError: There are fewer rows of features than items.

    Source:
        "Indexing by latent semantic analysis", JASIS 1990. Differs: rows of length 1; vectors of
        items are not divided by the singular values.
    """
    tokens = _read_tokens(model, features)
    names = ", ".join(one.name for one in tokens)
    shares = hstack([one.shares for one in tokens], format="csr")  # [N, V]
    weights = np.concatenate([one.weights for one in tokens])  # [V]
    items = csr_array(shares @ diags_array(weights))
    items.eliminate_zeros()
    if items.nnz == 0:
        raise ConfigError(
            "model.feature_start=content needs a value that some of the training items have and "
            f"others do not; there is none in {names}."
        )
    log.info("content start: %s items by %s values of %s", *map("{:,}".format, items.shape), names)
    spec = model.spec
    directions = leading_directions(unit_rows(items), spec.embedding_dim)  # [V, R]
    lengths = np.square(items @ directions).sum()
    at_random = spec.embedding_dim * spec.init_std**2 * np.square(shares.data).sum()
    rows = np.sqrt(at_random / lengths) * weights[:, None] * directions
    known = np.bincount(shares.indices, minlength=len(weights)) > 0
    start = 0
    for one in tokens:
        stop = start + len(one.weights)
        _set(model, one.name, rows[start:stop], known[start:stop])
        start = stop


def _read_tokens(model: TwoTower, features: FeatureTable) -> "list[_Tokens]":
    trained = model.item_tower.rows.trained.cpu().numpy()
    if len(features) < len(trained):
        raise ShapeError(f"`features` must have {len(trained)} rows, got {len(features)}.")
    read = [spec for spec in features.schema if spec.name in model.item_tower.features.names]
    tokens = [_Tokens.of(spec, features, trained) for spec in read if spec.kind in TOKEN_KINDS]
    if not tokens:
        there = ", ".join(f"{spec.name} ({spec.kind})" for spec in read) or "none"
        raise ConfigError(
            "model.feature_start=content needs an item feature of the kinds "
            f"{', '.join(TOKEN_KINDS)}; the tower reads {there}."
        )
    return tokens


@dataclass(frozen=True)
class _Tokens:
    """The values of one feature in the training items.

    Attributes:
        name: The feature.
        shares: [N, V], weights that the item tower gives to the rows of the feature's table.
        weights: [V], what a token counts for.
    """

    name: str
    shares: csr_array
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, spec: FeatureSpec, features: FeatureTable, trained: NDArray[np.bool_]) -> Self:
        rows, column = np.flatnonzero(trained), features.columns[spec.name]
        column = column.take(rows) if isinstance(column, Ragged) else column[rows]
        counts = count_tokens(spec, column)
        lengths = column.lengths if isinstance(column, Ragged) else np.ones(len(rows))
        mean = lengths[lengths > 0].mean() if lengths.any() else 1.0
        shares = csr_array(diags_array(1 / np.maximum(lengths, 1)) @ counts)
        return cls(spec.name, shares, mean * inverse_frequencies(counts))


def _set(model: TwoTower, name: str, rows: NDArray[np.float64], known: NDArray[np.bool_]) -> None:
    """Overwrite the rows of V tokens in the table of a feature."""
    encoders = model.item_tower.features
    encoder = encoders.encoders[encoders.names.index(name)]
    assert isinstance(encoder, BagEncoder | CategoryEncoder)  # noqa: S101 - by its kind
    missing = encoder.empty_row if isinstance(encoder, BagEncoder) else 0
    table = encoder.table.weight
    table.mul_(_SMALL)
    small = table[missing].clone()
    table[: len(rows), : rows.shape[1]] = torch.from_numpy(rows).to(table)
    table[: len(rows)][torch.from_numpy(~known).to(table.device)] = 0
    table[missing] = small
