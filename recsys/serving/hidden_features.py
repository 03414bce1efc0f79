"""Copies of one row of features, each with something hidden.

Dimensions: N rows of a table.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from recsys.data import FeatureSchema, FeatureTable


def hide_features(table: FeatureTable, hidden: Mapping[str, NDArray[np.bool_]]) -> FeatureTable:
    """Make features missing in some rows.

    Args:
        table: N rows.
        hidden: Feature -> [N]; features that are not named stay.
    """
    columns = dict(table.columns)
    rows = np.arange(len(table))
    for spec in table.schema:
        if spec.name in hidden:
            alone = FeatureTable(
                FeatureSchema((spec,)), {spec.name: table.columns[spec.name]}, len(table)
            )
            kept = np.where(hidden[spec.name], -1, rows)
            columns[spec.name] = alone.take(kept).columns[spec.name]
    return FeatureTable(table.schema, columns, len(table))
