"""Values at random places of a large array."""

from torch import Tensor


def take(values: Tensor, rows: Tensor) -> Tensor:
    """Give ``values[rows]``.

    `index_select` is three times faster than indexing where the places are in no order and the
    array is beyond the caches: its reads overlap.

    Args:
        values: [C], any dtype.
        rows: Any shape, int32 or int64, in [0, C).

    Returns:
        As `rows`, in the dtype of `values`.
    """
    return values.index_select(0, rows.reshape(-1)).view(rows.shape)
