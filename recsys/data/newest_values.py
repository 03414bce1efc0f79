"""The newest values of ranges of a column, newest first, as a padded table.

Dimensions: N values, R ranges, L columns.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


class NewestValues:
    """Reads ranges of a column backwards from their ends.

    A range that stands in one piece is copied in one piece, not value by value.

    Args:
        values: [N], integers; may be mapped.
        width: The most columns of a table.
        padding: Stands beyond the start of a range.
    """

    def __init__(self, values: NDArray[np.integer], *, width: int, padding: int) -> None:
        self._values, self._width, self._padding = values, width, padding
        self._ages = np.arange(width, dtype=np.int32)
        whole = 0 < width <= len(values)
        self._windows = sliding_window_view(values, width)[:, ::-1] if whole else None

    def take(
        self, ends: NDArray[np.int64], lengths: NDArray[np.int64], width: int | None = None
    ) -> NDArray[np.int64]:
        """Give ``values[end - 1], values[end - 2], ...`` of each range.

        Args:
            ends: [R], exclusive ends of the ranges.
            lengths: [R]; a range begins at ``end - length``.
            width: L, at most the width given above. None: as much.

        Returns:
            [R, L], int64.
        """
        ages = self._ages[:width]
        if self._windows is None:
            taken = self._take_each(ends, ages)
        else:
            places = ends - self._width
            taken = self._windows[np.maximum(places, 0), : len(ages)].astype(np.int64)
            early = np.flatnonzero(places < 0)  # the column begins within their window
            if len(early):
                taken[early] = self._take_each(ends[early], ages)
        np.copyto(taken, self._padding, where=ages >= lengths.astype(np.int32)[:, None])
        return taken

    def _take_each(self, ends: NDArray[np.int64], ages: NDArray[np.int32]) -> NDArray[np.int64]:
        positions = ends[:, None] - 1 - ages  # [R, L]
        return self._values.take(positions, mode="clip").astype(np.int64)
