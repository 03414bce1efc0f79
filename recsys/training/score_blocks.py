"""How well scores rank that are all there, without a search for each setting they come from.

A search scores its candidates anew, so that no rounding enters the order. Where settings are
compared the order of equals may be any, and the scores of the whole catalogue do.

Dimensions: B queries of a block, N candidates.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.evaluation import EvaluationQueries, RankedCandidates
from recsys.foundations import Ragged
from recsys.metrics import ndcg_at_k, num_relevant_of, relevance_of

_MOST_SCORES = 2**22  # at once: 16 MB


def score_blocks(queries: EvaluationQueries, num_items: int) -> Iterator[EvaluationQueries]:
    """Cut queries into blocks whose scores of N candidates stay small."""
    step = max(_MOST_SCORES // num_items, 1)
    for start in range(0, len(queries), step):
        yield queries.slice(start, start + step)


def ndcg_of_scores(
    scores: Tensor, block: EvaluationQueries, *, exclude_seen: bool
) -> NDArray[np.float64]:
    """Compute the NDCG@100, or NDCG@N where that is less, of each query: [B].

    Args:
        scores: [B, N], float32; those of what is left out become -inf.
        block: B queries.
        exclude_seen: Whether items of a user's history are left out.
    """
    num_items = scores.shape[1]
    k = RankedCandidates("all", None, num_items).choice_k
    if exclude_seen:
        seen = block.seen
        scores[torch.from_numpy(seen.owners()), torch.from_numpy(seen.rows).long()] = -torch.inf
    values, rows = scores.topk(k, dim=1)
    kept = (values > -torch.inf).numpy()
    lists = Ragged(np.append(0, kept.sum(axis=1).cumsum()), rows.numpy()[kept])
    return ndcg_at_k(relevance_of(lists, block.truth), num_relevant_of(block.truth), k)
