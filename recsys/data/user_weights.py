"""How much each event counts in training, so that long histories need not dominate."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.mapped_arrays import row_blocks
from recsys.foundations import ArgumentError

_ROWS_AT_ONCE = 2**22


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
    divisors = np.diff(events.offsets_of()) ** power
    blocks = list(row_blocks(len(events), _ROWS_AT_ONCE))
    before = sum(_weights(events, rows).sum() for rows in blocks)
    after = sum(_weights(events, rows, divisors).sum() for rows in blocks)
    scale = before / after if after > 0 else 1.0
    weights = np.empty(len(events), np.float32)
    for rows in blocks:
        weights[rows] = _weights(events, rows, divisors) * scale
    return replace(events, weights=weights)


def _weights(
    events: Events, rows: slice, divisors: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Give the weights of some events, divided by those of their users where they are given."""
    weights = np.ones(rows.stop - rows.start)
    if events.weights is not None:
        weights = events.weights[rows].astype(np.float64)
    return weights if divisors is None else weights / divisors[events.users[rows]]
