"""What the items that users had get on top of their scores, by validation.

Dimensions: B queries of a block, P own items of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation import (
    Embed,
    EvaluationQueries,
    RankedCandidates,
    choice_k,
    choice_ndcg,
)
from recsys.foundations import Ragged
from recsys.index import Index, ScoredCandidates
from recsys.models import decayed_counts


@dataclass(frozen=True)
class _Block:
    """What is ranked for some queries, and log(1 + count) of their own items by decay."""

    candidates: ScoredCandidates
    logarithms: dict[float, NDArray[np.float64]]  # [P]


def choose_repeats(
    pairs: Sequence[tuple[float, float]],
    queries: EvaluationQueries,
    *,
    embed: Embed,
    exact: Index,
    length: int,
    ranked: RankedCandidates,
) -> tuple[float, float]:
    """Choose the weight and the decay with which the model has the highest mean NDCG@100.

    The queries are embedded, searched for and their own items scored once; a pair only orders
    these anew. Nothing is excluded, or there would be no own items to give.

    Args:
        pairs: Weight and decay, at least one.
        queries: Who chooses.
        embed: Gives the vectors of a block of queries.
        exact: Exact search over the candidates.
        length: Events of a history that count.
        ranked: What is ranked.

    Returns:
        The best pair, the first of equal ones.
    """
    decays = list(dict.fromkeys(decay for _, decay in pairs))
    blocks = _prepare(queries, decays, embed=embed, exact=exact, length=length, ranked=ranked)

    def ndcg(weight: float, decay: float) -> float:
        def rank(asked: EvaluationQueries, _k: int, _exclude: Ragged) -> Ragged:
            block = blocks[int(asked.user_rows[0])]
            return block.candidates.top(weight * block.logarithms[decay]).lists

        return choice_ndcg(queries, rank, exclude_seen=False, ranked=ranked)

    found = [ndcg(*pair) for pair in pairs]
    return pairs[found.index(max(found))]


def _prepare(
    queries: EvaluationQueries,
    decays: Sequence[float],
    *,
    embed: Embed,
    exact: Index,
    length: int,
    ranked: RankedCandidates,
) -> dict[int, _Block]:
    """Find what may be ranked for each block of queries, by the user row of its first one."""
    blocks: dict[int, _Block] = {}
    for block, judged in ranked.blocks(queries):
        if not len(judged):
            continue
        asked, logarithms = judged.queries, {}
        for decay in decays:
            rows, counts = decayed_counts(asked.histories, decay=decay, length=length)
            logarithms[decay] = np.log1p(counts)
        vectors = embed(block)[judged.places]
        found = ScoredCandidates.find(
            exact.search, vectors, choice_k(ranked), rows, allowed=ranked.rows
        )
        blocks[int(asked.user_rows[0])] = _Block(found, logarithms)
    return blocks
