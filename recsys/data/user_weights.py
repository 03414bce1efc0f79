"""How much each event counts in training, so that long histories need not dominate."""

from dataclasses import replace

import numpy as np

from recsys.data.events import Events
from recsys.foundations import ArgumentError


def weigh_by_user(events: Events, power: float) -> Events:
    """Divide the weight of each event by n^power, n the number of its user's events.

    Args:
        events: The training part.
        power: From 0, where every event counts alike, to 1, where every user does.

    Returns:
        The same events with the new weights, scaled so that their sum stays what it was.

    Raises:
        ArgumentError: `power` is out of range.
    """
    if not 0 <= power <= 1:
        raise ArgumentError(f"`power` must be from 0 to 1, got {power}.")
    if power == 0 or len(events) == 0:
        return events
    old = np.ones(len(events)) if events.weights is None else events.weights.astype(np.float64)
    new = old / np.bincount(events.users)[events.users] ** power
    scale = old.sum() / new.sum() if new.sum() > 0 else 1.0
    return replace(events, weights=(new * scale).astype(np.float32))
