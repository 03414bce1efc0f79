"""Which item came right before which, in the order that training sees."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events, history_ends


def consecutive_pairs(
    events: Events, clock: str, ties: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair each event's item with the newest item of the history that training gives the event.

    Args:
        events: Sorted, as they are.
        clock: "time", "order" or "none".
        ties: "include": an event follows the one right before it; "exclude": the newest one of an
            earlier time.

    Returns:
        The previous and the next items, [N] and [N], int64, in the order of the events; events
        without a history are left out, repeats of a pair stay. With clock "none" no item comes
        before another: as in `EventBatches`, an event then follows the next one of its user's
        list (the last one follows the first), unless the two are of the same item.
    """
    ends = history_ends(events, clock, ties)
    new_user = np.append(True, events.users[1:] != events.users[:-1])[: len(events)]
    starts = np.maximum.accumulate(np.where(new_user, np.arange(len(events)), 0))
    if clock == "none":
        following = np.arange(1, len(events) + 1)
        previous = np.where(following < ends, following, starts)
        paired = events.items[previous] != events.items
    else:
        previous = ends - 1
        paired = ends > starts
    return events.items[previous[paired]], events.items[paired]
