"""How popular candidates are, as a probability and as a place among the others.

Dimensions: C candidates.
"""

import numpy as np
from numpy.typing import NDArray

_EVENTS_OF_NONE = 0.5


def log_popularity(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the log of each candidate's share of the training events.

    A candidate without events counts as one with half an event, so that the log is finite.

    Args:
        counts: [C], events of each candidate in the training part.

    Returns:
        [C], in nats; the shares sum to 1.
    """
    events = np.maximum(counts, _EVENTS_OF_NONE)
    return np.asarray(np.log(events / events.sum()))


def popularity_percentiles(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the share of the catalogue that is less popular than each candidate.

    Candidates of equal count share the middle of their places, so that the mean over the
    catalogue is 1/2, whatever the counts are.

    Args:
        counts: [C], events of each candidate in the training part.

    Returns:
        [C], above 0 and below 1.
    """
    ordered = np.sort(counts)
    below, up_to = (np.searchsorted(ordered, counts, side=side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * max(len(counts), 1)))
