"""What the items that users had get on top of their scores, by validation.

Dimensions: B queries of a block, P own items of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation import Embed, EvaluationQueries, RankedCandidates
from recsys.foundations import Ragged
from recsys.index import Index, ScoredCandidates
from recsys.metrics import ndcg_at_k, num_relevant_of, relevance_of
from recsys.models import decayed_counts


@dataclass(frozen=True)
class _Block:
    """What may be ranked for some queries, in the end by their own items' bonus.

    Attributes:
        candidates: Found and scored.
        relevant: Of each candidate, whether its query chose it.
        num_relevant: [B].
        logarithms: By decay, log(1 + count) of the own items, [P].
    """

    candidates: ScoredCandidates
    relevant: NDArray[np.bool_]
    num_relevant: NDArray[np.int64]
    logarithms: dict[float, NDArray[np.float64]]

    def ndcg(self, weight: float, decay: float) -> NDArray[np.float64]:
        """Compute the NDCG of each query with a bonus: [B]."""
        found = self.candidates
        best = found.order(found.scores_with(weight * self.logarithms[decay]))
        hits = Ragged.from_pairs(found.queries[best], self.relevant[best], found.num_queries)
        return ndcg_at_k(hits, self.num_relevant, found.k)


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
    totals = [sum(float(block.ndcg(*pair).sum()) for block in blocks) for pair in pairs]
    return pairs[totals.index(max(totals))]


def _prepare(
    queries: EvaluationQueries,
    decays: Sequence[float],
    *,
    embed: Embed,
    exact: Index,
    length: int,
    ranked: RankedCandidates,
) -> list[_Block]:
    """Embed, search and score once; no block where nobody chose what is ranked."""
    blocks = []
    for block, judged in ranked.blocks(queries):
        if not len(judged):
            continue
        asked, logarithms = judged.queries, {}
        for decay in decays:
            rows, counts = decayed_counts(asked.histories, decay=decay, length=length)
            logarithms[decay] = np.log1p(counts)
        vectors, k = embed(block)[judged.places], ranked.choice_k
        found = ScoredCandidates.find(exact.search, vectors, k, rows, allowed=ranked.rows)
        lists = Ragged.from_pairs(found.queries, found.rows, found.num_queries)
        relevant = relevance_of(lists, asked.truth).rows
        blocks.append(_Block(found, relevant, num_relevant_of(asked.truth), logarithms))
    return blocks
