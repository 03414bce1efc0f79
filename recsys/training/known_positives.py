"""What each user has in the training part, to keep it from among the negatives."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import Events


class KnownPositives:
    """Tell which candidates a user has in training; a look-up costs O(log of the events).

    Args:
        events: The training part.
        num_items: Candidates in the catalogue.
    """

    def __init__(self, events: Events, num_items: int) -> None:
        self._num_items = num_items
        self._pairs = np.unique(events.users * np.int64(num_items) + events.items)

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
        pairs = users[:, None] * np.int64(self._num_items) + candidate_rows.numpy()  # [B, K]
        places = np.searchsorted(self._pairs, pairs).clip(max=len(self._pairs) - 1)
        known = torch.from_numpy(self._pairs[places] == pairs)
        return known & (candidate_rows != positive_rows[:, None])
