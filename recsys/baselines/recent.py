"""What was popular of late."""

import numpy as np
from numpy.typing import NDArray

from recsys.baselines.interactions import Interactions
from recsys.foundations import ArgumentError, check_positive

_DAY = 86_400 * 1_000_000  # µs


def recent_counts(interactions: Interactions, days: float) -> NDArray[np.int64]:
    """Count each candidate's events in the last days before the latest event.

    Args:
        interactions: Events with a clock.
        days: Length of the window; above 0.

    Returns:
        [N], int64.

    Raises:
        ArgumentError: `days` is not above 0, or there is no clock.
    """
    check_positive("days", days)
    if interactions.timestamps is None:
        raise ArgumentError("`interactions` must have times of a clock to know what is recent.")
    times = interactions.timestamps
    late = times > times.max(initial=0) - round(days * _DAY)
    return np.bincount(interactions.items[late], minlength=interactions.num_items)
