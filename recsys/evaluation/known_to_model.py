"""Of which queries a model reads anything at all.

Dimensions: U queries, L items of a history that the model looks at.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import Ragged
from recsys.models import TwoTower


def known_to_model(model: TwoTower, queries: EvaluationQueries) -> NDArray[np.bool_]:
    """Tell of which users the model reads an id, a feature or an item of the history: [U].

    Only what the user tower is made of counts: the id of a user with training events, the features
    that it reads, and of the L newest items those that histories know, or the ridge part. The
    context of a request says nothing of the user.
    """
    tower = model.user_tower
    known = queries.features.known(tower.features.names)
    if tower.ids is not None:
        known |= queries.known
    if model.history_length > 0:
        known |= _with_counted_item(model, queries.histories)
    return known


def _with_counted_item(model: TwoTower, histories: Ragged) -> NDArray[np.bool_]:
    """Tell which histories have an item that the model reads among their newest ones: [U]."""
    ends = np.repeat(histories.offsets[1:], histories.lengths)
    newest = ends - np.arange(len(histories.rows)) <= model.history_length
    given = histories.rows[newest].astype(np.int64)
    given[given >= model.num_history_items] = -1  # added since the training
    rows = torch.from_numpy(given).to(model.device)
    counted = model.counts_in_history(rows).cpu().numpy()
    return np.bincount(histories.owners()[newest][counted], minlength=len(histories)) > 0
