"""How good a ranking is, as settings of a model are chosen by it.

Dimensions: A ranked candidates.
"""

from recsys.evaluation.candidates import RankedCandidates
from recsys.evaluation.queries import EvaluationQueries
from recsys.evaluation.rankers import Rank
from recsys.foundations import Ragged
from recsys.metrics import ndcg_at_k, num_relevant_of, relevance_of

_LONGEST = 100


def choice_k(ranked: RankedCandidates) -> int:
    """Give the length of the lists that settings are chosen by: 100, or A where that is less."""
    return min(_LONGEST, ranked.num)


def choice_ndcg(
    queries: EvaluationQueries,
    rank: Rank,
    *,
    exclude_seen: bool,
    ranked: RankedCandidates,
) -> float:
    """Compute the mean NDCG@100, or NDCG@A where that is less, of a ranking.

    Settings are chosen by it and not by the recall of a short list: it moves with every relevant
    candidate of the first hundred, and so tells settings apart by a few hundred users.

    Args:
        queries: Who chooses.
        rank: Ranks what is ranked.
        exclude_seen: Whether items of a user's history are left out.
        ranked: What is ranked.

    Returns:
        0 to 1; 0 where no query chose what is ranked.
    """
    k, total, number = choice_k(ranked), 0.0, 0
    for _, judged in ranked.blocks(queries):
        if len(judged):
            asked = judged.queries
            exclude = asked.seen if exclude_seen else Ragged.empty(len(asked))
            hits = relevance_of(rank(asked, k, exclude), asked.truth)
            total += float(ndcg_at_k(hits, num_relevant_of(asked.truth), k).sum())
            number += len(asked)
    return total / number if number else 0.0
