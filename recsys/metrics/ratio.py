"""Division that leaves the undefined undefined."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def divide_where_defined(value: NDArray[Any], by: NDArray[Any]) -> NDArray[np.float64]:
    """Divide element by element; NaN where the divisor is 0.

    Args:
        value: [N], any real type.
        by: [N], at least 0.

    Returns:
        [N], float64.
    """
    result = np.full(len(value), np.nan)
    np.divide(value, by, out=result, where=by > 0)
    return result
