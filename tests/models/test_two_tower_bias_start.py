"""Item biases that begin at the log popularity make the untrained model the unigram model."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureTable
from recsys.foundations import ConfigError, ShapeError
from recsys.metrics import log_popularity
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower

COUNTS = np.array([6, 1, 0, 3])


def make_model(*, item_bias: bool, temperature: float = 0.5) -> TwoTower:
    nothing = FeatureSchema()
    return build_two_tower(
        ModelSpec(
            embedding_dim=3,
            user_tower=UserTowerSpec(history="none"),
            item_tower=ItemTowerSpec(id_dropout=0.0),
            item_bias=item_bias,
            temperature=temperature,
            init_std=1e-6,
        ),
        num_users=2,
        num_items=4,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
    )


def test_the_untrained_softmax_is_the_unigram_distribution() -> None:
    model = make_model(item_bias=True)
    model.start_at_popularity(COUNTS)
    candidates = model.embed_candidates(torch.arange(4), FeatureTable.missing(FeatureSchema(), 4))
    logits = candidates[:, -1] / 0.5  # the vectors are nearly 0
    expected = torch.tensor([6.0, 1.0, 0.5, 3.0]) / 10.5  # no event counts as half a one
    assert_close(logits.softmax(0).detach(), expected, rtol=1e-4, atol=0)


def test_the_popularity_dial_at_1_takes_away_what_the_biases_begin_with() -> None:
    model = make_model(item_bias=True)
    model.start_at_popularity(COUNTS)
    candidates = model.embed_candidates(torch.arange(4), FeatureTable.missing(FeatureSchema(), 4))
    taken = 0.5 * torch.from_numpy(log_popularity(COUNTS))  # alpha 1 times the temperature
    assert_close(candidates[:, -1].detach().double(), taken, rtol=1e-6, atol=0)


def test_biases_are_refused_where_there_are_none_or_too_few_counts() -> None:
    with pytest.raises(ConfigError, match="item_bias must be true"):
        make_model(item_bias=False).start_at_popularity(COUNTS)
    with pytest.raises(ShapeError, match="`item_counts` must have shape"):
        make_model(item_bias=True).start_at_popularity(COUNTS[:2])
