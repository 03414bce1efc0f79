"""Which item came right before which, in the order that training sees."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.history_ranges import HistoryRanges
from recsys.data.mapped_arrays import row_blocks


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
    ranges, items = HistoryRanges(events, clock=clock, ties=ties), events.items
    pairs = [np.zeros((2, 0), np.int64)]
    for block in row_blocks(len(events)):
        rows = np.arange(block.start, block.stop)
        starts, ends = ranges.of(rows)
        if clock == "none":
            previous = np.where(rows + 1 < ends, rows + 1, starts)
            paired = items.take(previous) != items[block]
        else:
            previous, paired = ends - 1, ends > starts
        pairs.append(np.stack([items.take(previous[paired]), items[block][paired]]))
    previous_items, next_items = np.concatenate(pairs, axis=1, dtype=np.int64)
    return previous_items, next_items
