"""What all encoders of histories share: an unknown item is as if it were not there."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recsys.data import NO_TIME, FeatureSchema, FeatureTable
from recsys.models import ModelSpec, QueryInputs, TwoTower, UserTowerSpec, build_two_tower

NUM_ITEMS, LENGTH, COLD = 9, 6, 8
NOTHING = FeatureSchema()
ENCODERS: dict[str, dict[str, Any]] = {
    "mean": {"history": "mean"},
    "recency": {"history": "recency"},
    "gate": {"history": "recency", "gate_dim": 3},
    "attention": {"history": "attention"},
    "interests": {"history": "attention", "num_interests": 2},
    "gru": {"history": "gru", "time_gaps": True},
    "relative": {"history": "transformer", "time_gaps": True},
    "absolute": {"history": "transformer", "positions": "absolute"},
}


def make_model(encoder: str) -> TwoTower:
    torch.manual_seed(0)
    tower = UserTowerSpec(
        use_id=False,
        history_length=LENGTH,
        decay=0.5,
        history_dropout=0.0,
        layer_dropout=0.0,
        feature_dropout=0.0,
        **ENCODERS[encoder],
    )
    counts = np.ones(NUM_ITEMS, np.int64)
    counts[COLD] = 0
    model = build_two_tower(
        ModelSpec(embedding_dim=4, init_std=1.0, user_tower=tower),
        num_users=1,
        num_items=NUM_ITEMS,
        user_schema=NOTHING,
        item_schema=NOTHING,
        context_schema=NOTHING,
        item_counts=counts,
    )
    for parameter in model.parameters():  # ages, too, which begin at 0
        parameter.data.add_(torch.randn_like(parameter))
    return model


def embed(model: TwoTower, items: list[int], times: list[int]) -> Tensor:
    def padded(values: list[int], filler: int) -> NDArray[np.int64]:
        return np.array([values + [filler] * (LENGTH - len(values))])

    nothing = FeatureTable.missing(NOTHING, 1)
    rows, met = padded(items, -1), padded(times, NO_TIME)
    return model.embed_queries(QueryInputs(np.array([-1]), rows, nothing, nothing, met))


histories = st.lists(st.sampled_from([-1, 0, 3, 5, 7, COLD]), min_size=1, max_size=LENGTH)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("encoder", ENCODERS)
@given(items=histories)
@settings(max_examples=25, deadline=None)
def test_an_unknown_item_counts_in_no_age_and_in_no_order(
    encoder: str, training: bool, items: list[int]
) -> None:
    model = make_model(encoder).train(training)
    times = [10**7 * (20 - place) ** 3 for place in range(len(items))]
    known = [place for place, item in enumerate(items) if 0 <= item < COLD]
    alone = embed(model, [items[place] for place in known], [times[place] for place in known])
    assert_close(embed(model, items, times), alone)


@pytest.mark.parametrize(
    "encoder", ["recency", "gate", "attention", "interests", "gru", "relative"]
)
def test_the_order_of_known_items_counts(encoder: str) -> None:
    model = make_model(encoder).eval()
    assert not torch.allclose(embed(model, [3, 5], [20, 10]), embed(model, [5, 3], [20, 10]))
