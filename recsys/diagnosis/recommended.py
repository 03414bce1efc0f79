"""How popular the items are that a model recommends, with log Q and without.

Dimensions: U users, M interests of a user, C candidates, E output width.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation import EvaluationQueries, popularity_deciles
from recsys.foundations import Ragged
from recsys.index import ExactIndex

RANKINGS = ("scores", "minus_log_q", "plus_log_q")


@dataclass(frozen=True)
class RecommendedPopularity:
    """Shares by popularity decile of the item, each list of ten adding up to 1.

    Attributes:
        k: Length of the lists.
        num_users: Users who were given a list.
        shares: Ranking -> [10], share of the recommended items in deciles 1 (least popular) to 10:
            `scores`, as the model ranks; `minus_log_q`, by score / temperature - log Q, as a model
            comes to rank that is trained on in-batch candidates without the correction;
            `plus_log_q`, by score / temperature + log Q, what the correction would have made of a
            model that was trained without it.
        chosen: [10], share of the validation positives.
        bounds: Lowest and highest training count of each of the ten deciles; None for one without
            an item.
    """

    k: int
    num_users: int
    shares: dict[str, NDArray[np.float64]]
    chosen: NDArray[np.float64]
    bounds: list[tuple[int, int] | None]

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "k": self.k,
            "num_users": self.num_users,
            "shares_by_decile": {name: list(map(float, one)) for name, one in self.shares.items()},
            "share_of_positives_by_decile": list(map(float, self.chosen)),
            "training_events_by_decile": [pair and list(pair) for pair in self.bounds],
        }


def recommend_by_popularity(
    queries: EvaluationQueries,
    query_vectors: NDArray[np.float32],
    item_vectors: NDArray[np.float32],
    counts: NDArray[np.int64],
    *,
    temperature: float,
    k: int,
    exclude_seen: bool,
) -> RecommendedPopularity:
    """Count what is recommended by the popularity of the item.

    With log Q in training the scores tend to log P + constant; without it to log P - log Q +
    constant, with Q the rate at which candidates are drawn: here the training share of the item,
    as of in-batch candidates. Only items with training events are ranked: of others Q is 0.

    Args:
        queries: U queries.
        query_vectors: [U, E] or [U, M, E].
        item_vectors: [C, E].
        counts: [C], training events.
        temperature: The model's.
        k: Length of the lists; at least 1.
        exclude_seen: Whether items that a user had already are left out.
    """
    deciles = popularity_deciles(counts)
    allowed = np.flatnonzero(deciles > 0)
    log_q = np.zeros(len(counts))
    log_q[allowed] = np.log(counts[allowed] / counts.sum())
    scaled = (query_vectors / temperature).astype(np.float32)
    extended = np.concatenate([scaled, np.ones_like(scaled[..., :1])], axis=-1)  # E + 1 wide
    exclude = queries.seen if exclude_seen else Ragged.empty(len(queries))
    shares = {}
    for name, sign in zip(RANKINGS, (0.0, -1.0, 1.0), strict=True):
        offsets = (sign * log_q).astype(np.float32)[:, None]
        index = ExactIndex(np.concatenate([item_vectors, offsets], axis=1))
        hits = index.search(extended, k, exclude=exclude, allowed=allowed)
        shares[name] = _shares(deciles[hits.candidate_rows])
    truth = queries.truth.rows
    groups = [counts[deciles == decile] for decile in range(1, 11)]
    return RecommendedPopularity(
        k=k,
        num_users=len(queries),
        shares=shares,
        chosen=_shares(deciles[truth[truth < len(counts)]]),
        bounds=[(int(g.min()), int(g.max())) if len(g) else None for g in groups],
    )


def _shares(deciles: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the share of the deciles 1 to 10 among those that are no 0: [10]."""
    counted = np.bincount(deciles, minlength=11)[1:]
    return np.asarray(counted / max(counted.sum(), 1), np.float64)
