"""What a model could do before and after it went on from an older one, on the same users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recsys.evaluation.estimates import Estimate, Resampling, intervals_of, values_of
from recsys.foundations import DataError

_METRICS = ("recall_at_", "ndcg_at_")

Tables = Mapping[str, pa.Table]  # part -> `user_id` and a column a metric, one row a user


@dataclass(frozen=True, kw_only=True)
class WarmStartReport:
    """Where a model started, and what training on from there brought.

    Attributes:
        bundle_id: Of the bundle that it went on from.
        counts: "users", "items" and "features" -> "kept", "new" and "dropped" -> how many.
        fresh_features: Feature -> why it started anew although the bundle had it.
        before: Part -> `recall_at_10` and so on, of the exact ranking before the first step.
        after: Likewise, with the weights that the run ended with.
        difference: After minus before, with paired intervals.
    """

    bundle_id: str
    counts: Mapping[str, Mapping[str, int]]
    fresh_features: Mapping[str, str]
    before: Mapping[str, Mapping[str, Estimate]]
    after: Mapping[str, Mapping[str, Estimate]]
    difference: Mapping[str, Mapping[str, Estimate]]

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "bundle_id": self.bundle_id,
            **{name: dict(counts) for name, counts in self.counts.items()},
            "fresh_features": dict(self.fresh_features),
            "before": {part: values_of(some) for part, some in self.before.items()},
            "after": {part: values_of(some) for part, some in self.after.items()},
            "difference": {
                part: {"metrics": values_of(some), "intervals": intervals_of(some)}
                for part, some in self.difference.items()
            },
        }

    def flat_metrics(self) -> dict[str, float]:
        """Give `after_test_recall_at_10`, `difference_test_recall_at_10` and so on."""
        return {
            f"{name}_{part}_{metric}": estimate.value
            for name, parts in (("after", self.after), ("difference", self.difference))
            for part, some in parts.items()
            for metric, estimate in some.items()
        }


def compare_before_after(
    before: Tables, after: Tables, resampling: Resampling
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Estimate what each part's users got before and after, and the difference.

    Args:
        before: Values of each user, by part.
        after: Of the same parts and users, in the same order.
        resampling: How intervals are made.

    Returns:
        "before", "after" and "difference", as `WarmStartReport` holds them; recall and NDCG at
        every k that both have.

    Raises:
        DataError: The users differ.
    """
    found: dict[str, dict[str, dict[str, Estimate]]] = {"before": {}, "after": {}, "difference": {}}
    for part, first in before.items():
        second = after[part]
        if not first["user_id"].equals(second["user_id"]):
            raise DataError(f"The users of the {part} part are not those from before the training.")
        names = [name for name in first.column_names if name in second.column_names]
        names = [name for name in names if name.startswith(_METRICS)]
        old, new = ({n: np.asarray(t[n].to_numpy()) for n in names} for t in (first, second))
        found["before"][part], found["after"][part] = resampling.means(old), resampling.means(new)
        found["difference"][part] = resampling.means({n: new[n] - old[n] for n in names})
    return found


def mean_values(tables: Tables) -> dict[str, float]:
    """Give the means of recall and NDCG as `before_test_recall_at_10` and so on."""
    return {
        f"before_{part}_{name}": float(np.nanmean(table[name].to_numpy()))
        for part, table in tables.items()
        for name in table.column_names
        if name.startswith(_METRICS)
    }
