"""Recall of parts of the catalogue and of groups of users.

Dimensions: U queries, T relevant candidates of all queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.estimates import Estimate, Resampling
from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import Ragged

_ACTIVITY = ((0, 0), (1, 5), (6, 20), (21, 50), (51, 200), (201, None))


@dataclass(frozen=True)
class Slice:
    """One part of the catalogue, or one group of users.

    Attributes:
        name: What it holds.
        num_users: Users with a relevant item in it.
        num_positives: Relevant items in it.
        recall: System (`model`, `popularity`) -> recall@k there.
        bounds: What delimits it: lowest and highest training count or history length.
    """

    name: str
    num_users: int
    num_positives: int
    recall: dict[str, Estimate]
    bounds: tuple[int, int | None] | None = None

    def to_json(self, k: int) -> dict[str, Any]:
        """Give plain values for the report."""
        plain: dict[str, Any] = {
            "slice": self.name,
            "num_users": self.num_users,
            "num_positives": self.num_positives,
        }
        if self.bounds is not None:
            plain |= {"lowest": self.bounds[0], "highest": self.bounds[1]}
        for system, estimate in self.recall.items():
            prefix = "" if system == "model" else f"{system}_"
            plain[f"{prefix}recall_at_{k}"] = estimate.value
            if estimate.low is not None:
                plain[f"{prefix}interval"] = [estimate.low, estimate.high]
        return plain


def popularity_deciles(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide the candidates that have training events into ten groups of equal size.

    Args:
        counts: [N], training events of each candidate.

    Returns:
        [N], 1 (least popular) to 10 (most popular); 0 for a candidate without training events.
        Equal counts are divided by row.
    """
    order = np.argsort(counts, kind="stable")
    warm = order[counts[order] > 0]
    deciles = np.zeros(len(counts), np.int64)
    deciles[warm] = np.arange(len(warm)) * 10 // max(len(warm), 1) + 1
    return deciles


def slice_items(
    queries: EvaluationQueries,
    counts: NDArray[np.int64],
    ranks: Mapping[str, NDArray[np.float64]],
    k: int,
    resampling: Resampling,
) -> dict[str, list[Slice]]:
    """Compute the recall of the relevant items in each part of the catalogue.

    Every relevant item counts once (hits / relevant items of the part, over all users), as a user
    seldom has one in each part; the intervals resample users.

    Args:
        queries: The U queries.
        counts: [N], training events of each candidate.
        ranks: System -> [T], rank of each relevant item.
        k: Length of the list that is judged.
        resampling: How intervals are made.

    Returns:
        `item_popularity_decile` (1 to 10) and `item_warmth` (in training, cold, unknown).
    """
    rows, deciles = queries.truth.rows, popularity_deciles(counts)
    place = np.full(len(rows), 11)  # 0: cold, 1 to 10: deciles, 11: no candidate
    place[rows < len(counts)] = deciles[rows[rows < len(counts)]]
    warmth = np.select([place == 0, place == 11], [1, 2], 0)
    hits = {system: values <= k for system, values in ranks.items()}
    bounds = {
        decile: (int(counts[deciles == decile].min()), int(counts[deciles == decile].max()))
        for decile in range(1, 11)
        if (deciles == decile).any()
    }
    names = ["cold", *map(str, range(1, 11)), "unknown"]
    groups = _pooled(place, queries.truth, names, hits, resampling)
    kinds = ["in training", "cold: not in training", "unknown: no candidate"]
    return {
        "item_popularity_decile": [
            replace(groups[decile], bounds=ends) for decile, ends in bounds.items()
        ],
        "item_warmth": _pooled(warmth, queries.truth, kinds, hits, resampling),
    }


def slice_users(
    queries: EvaluationQueries,
    recall: Mapping[str, NDArray[np.float64]],
    resampling: Resampling,
) -> dict[str, list[Slice]]:
    """Compute the mean recall of groups of users.

    Args:
        queries: The U queries.
        recall: System -> [U], recall@k of each query.
        resampling: How intervals are made.

    Returns:
        `user_activity` (by the length of the history) and `user_kind` (known, new); groups without
        users are left out.
    """
    lengths = queries.histories.lengths
    activity = []
    for low, high in _ACTIVITY:
        inside = (lengths >= low) & (lengths <= (np.inf if high is None else high))
        name = "0" if high == 0 else f"{low}+" if high is None else f"{low}-{high}"
        one = _of_users(queries, inside, recall, resampling, name=name)
        activity.append(replace(one, bounds=(low, high)))
    kinds = [("known", queries.known), ("new: no training events", ~queries.known)]
    slices = {
        "user_activity": activity,
        "user_kind": [
            _of_users(queries, inside, recall, resampling, name=name) for name, inside in kinds
        ],
    }
    return {name: [one for one in some if one.num_users] for name, some in slices.items()}


def _of_users(
    queries: EvaluationQueries,
    inside: NDArray[np.bool_],
    recall: Mapping[str, NDArray[np.float64]],
    resampling: Resampling,
    *,
    name: str,
) -> Slice:
    return Slice(
        name=name,
        num_users=int(inside.sum()),
        num_positives=int(queries.truth.lengths[inside].sum()),
        recall=resampling.means({system: values[inside] for system, values in recall.items()}),
    )


def _pooled(
    groups: NDArray[np.int64],
    truth: Ragged,
    names: list[str],
    hits: Mapping[str, NDArray[np.bool_]],
    resampling: Resampling,
) -> list[Slice]:
    """Make one slice of each group of relevant items; `groups` and hits are [T]."""
    cells = truth.owners() * len(names) + groups
    shape = (len(truth), len(names))

    def count(weights: NDArray[np.bool_]) -> NDArray[np.float64]:
        counted = np.bincount(cells, weights, minlength=shape[0] * shape[1])
        return np.asarray(counted, np.float64).reshape(shape)

    relevant = count(np.ones(len(cells), bool))  # [U, groups]
    recalls = {
        system: resampling.ratios(names, count(values), relevant) for system, values in hits.items()
    }
    return [
        Slice(
            name=name,
            num_users=int((relevant[:, group] > 0).sum()),
            num_positives=int(relevant[:, group].sum()),
            recall={system: some[name] for system, some in recalls.items() if name in some},
        )
        for group, name in enumerate(names)
    ]
