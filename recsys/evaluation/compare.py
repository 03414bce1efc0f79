"""Two systems on the same users."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.evaluation.estimates import Estimate, Resampling
from recsys.evaluation.report import Report
from recsys.foundations import DataError


def compare_reports(first: Report, second: Report, resampling: Resampling) -> dict[str, Estimate]:
    """Compute the mean of first - second over the users of both, with paired intervals.

    An interval without 0 says that one of the two is better on this metric.

    Args:
        first: A report.
        second: Another one of the same users; the order of the users may differ.
        resampling: How intervals are made.

    Returns:
        Metric -> difference, for the metrics that both have.

    Raises:
        DataError: The users differ.
    """
    places = pc.index_in(_ids(first), value_set=_ids(second).combine_chunks())
    if places.null_count or len(places) != second.per_user.num_rows:
        raise DataError(
            f"The reports are of different users ({first.per_user.num_rows} and "
            f"{second.per_user.num_rows}); only the same users can be paired."
        )
    order = places.to_numpy()
    names = [name for name in first.per_user.column_names if "_at_" in name]
    return resampling.means(
        {
            name: np.asarray(first.per_user[name].to_numpy())
            - np.asarray(second.per_user[name].to_numpy())[order]
            for name in names
            if name in second.per_user.column_names
        }
    )


def _ids(report: Report) -> pa.ChunkedArray:
    return report.per_user["user_id"].cast(pa.large_string())
