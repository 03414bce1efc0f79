"""What each user has in the training part, to keep it from among the negatives.

Dimensions: B rows in the batch, K candidates, U different users of the batch, M events of theirs.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import Events
from recsys.foundations import Ragged


class KnownPositives:
    """Tell which candidates a user has in training; only the batch's users are looked at.

    Args:
        events: The training part.
        num_items: Candidates in the catalogue.
    """

    def __init__(self, events: Events, num_items: int) -> None:
        self._num_items = num_items
        offsets = events.offsets_of()
        self._num_users = len(offsets) - 1
        self._of_users = Ragged(np.append(offsets, offsets[-1]), events.items)  # then one of nobody

    def find_others(
        self, users: NDArray[np.int64], positive_rows: Tensor, candidate_rows: Tensor
    ) -> Tensor:
        """Find candidates that the row's user has in training besides the row's positive.

        Args:
            users: [B], user rows.
            positive_rows: [B], int64; what becomes of hits of the positive is the loss's to say.
            candidate_rows: [K] or [B, K], int64, in the catalogue.

        Returns:
            [B, K], bool.
        """
        different, owners = np.unique(users, return_inverse=True)
        lists = self._of_users.take(np.minimum(different, self._num_users))
        candidates = candidate_rows.numpy()
        if candidates.ndim == 1:
            known = _find_shared(lists, candidates)[owners]
        else:
            known = self._find_own(lists, owners, candidates)
        return torch.from_numpy(known) & (candidate_rows != positive_rows[:, None])

    def _find_own(
        self, lists: Ragged, owners: NDArray[np.int64], candidates: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Find each row's candidates [B, K] among the items of its user: [B, K]."""
        pairs = np.append(lists.owners() * self._num_items + lists.rows, -1)  # never empty
        pairs.sort()
        wanted = owners[:, None] * self._num_items + candidates
        places = np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)
        return np.asarray(pairs[places] == wanted)


def _find_shared(lists: Ragged, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Find candidates [K] among the items of each user: [U, K]."""
    if not len(candidates):  # a sample may be empty
        return np.zeros((len(lists), 0), bool)
    rows, columns = np.unique(candidates, return_inverse=True)
    places = np.searchsorted(rows, lists.rows).clip(max=len(rows) - 1)  # [M]
    met = rows[places] == lists.rows
    found = np.zeros((len(lists), len(rows)), bool)
    found[lists.owners()[met], places[met]] = True
    return found[:, columns]
