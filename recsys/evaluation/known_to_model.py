"""Of which queries a model reads anything at all.

Dimensions: U queries, N candidates, L items of a history that the model looks at.
"""

import numpy as np
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
        known |= _any_of_newest(queries.histories, _counted_items(model), model.history_length)
    return known


def _counted_items(model: TwoTower) -> NDArray[np.bool_]:
    """Tell which items of a history the model reads: [N]."""
    tower = model.item_tower
    trained: NDArray[np.bool_] = tower.rows.trained.cpu().numpy()
    if not model.spec.histories_read_tower or model.item_features is None:
        return trained
    told = model.item_features.known(tower.features.names)[: len(trained)]
    reads_ids = tower.ids is not None or model.ridge is not None
    return np.asarray(told | trained if reads_ids else told)


def _any_of_newest(histories: Ragged, counted: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Tell which lists have an item that counts among their last `length`: [U]."""
    ends = np.repeat(histories.offsets[1:], histories.lengths)
    hits = counted[histories.rows] & (ends - np.arange(len(histories.rows)) <= length)
    return np.bincount(histories.owners()[hits], minlength=len(histories)) > 0
