"""A model's ranking of the whole catalogue against what users chose.

Dimensions: U queries, B queries of a block, M interests of a query, D embedding width.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation.candidates import RankedCandidates, choose_candidates
from recsys.evaluation.dial_judge import DialJudge
from recsys.evaluation.estimates import Resampling
from recsys.evaluation.likelihood import CatalogueSoftmax, LikelihoodJudge
from recsys.evaluation.measures import check_ks, measure_lists, shown_k
from recsys.evaluation.own_items import Bonus, own_items
from recsys.evaluation.popularity import PopularityList, choose_lists
from recsys.evaluation.queries import EvaluationQueries, Reads, build_queries
from recsys.evaluation.report import Report
from recsys.evaluation.retrieval_report import retrieval_report
from recsys.evaluation.systems import Systems
from recsys.foundations import ArgumentError, DataError, Progress, Ragged
from recsys.index import Index, PopularityDial, search_with_bonus
from recsys.metrics import log_popularity

Embed = Callable[[EvaluationQueries], NDArray[np.float32]]


def evaluate_retrieval(
    dataset: PreparedDataset,
    part: str,
    *,
    embed: Embed,
    exact: Index,
    approximate: Index | None,
    ks: Sequence[int],
    seed: int,
    num_resamples: int,
    level: float,
    exclude_seen: bool | None = None,
    softmax: CatalogueSoftmax | None = None,
    popularity_alphas: Sequence[float] = (),
    candidates: str = "all",
    bonus: Bonus | None = None,
    reads: Reads | None = None,
) -> Report:
    """Rank the whole catalogue for every user of a part and compare with what the user chose.

    Works in blocks of 512 users; what is kept is a number a user and metric. Users of whom nothing
    is known get popular items, as they do when recommending; they are counted. The likelihood is
    the model's for them too.

    Args:
        dataset: The prepared data set.
        part: `validation` or `test`.
        embed: Gives the vectors of a block of queries: [B, D] or [B, M, D], float32.
        exact: Exact search over the candidates of `dataset`.
        approximate: The index that serves, or None.
        ks: Lengths of the list that is judged.
        seed: Of the resampling.
        num_resamples: Of the bootstrap.
        level: Of the intervals, as 0.95.
        exclude_seen: Whether items of a user's history are left out; None: as `dataset` says.
        softmax: What the likelihood is that of; None: it is not computed.
        popularity_alphas: Settings of the popularity dial to report beside 0; they need `softmax`,
            which has the temperature. Not with `candidates` "cold", which are equally popular.
        candidates: "all", or "cold": only the candidates without training events that have events
            in the part are ranked and relevant. The likelihood is that of the whole catalogue.
        bonus: What is added to the scores of items that users had, in every ranking of the model;
            not in its likelihood. None: nothing.
        reads: Of whom the model reads anything, as `known_to_model` says; None: of whoever has
            training events, a history or a feature.

    Returns:
        The report.

    Raises:
        DataError: Nobody has events in the part, the index has another number of candidates, or
            there is no cold candidate.
        ArgumentError: An argument is out of range.
    """
    ks = check_ks(ks)
    queries = build_queries(dataset, part).read_by(reads)
    _check(dataset, part, queries, exact, approximate)
    exclude = dataset.exclude_seen if exclude_seen is None else exclude_seen
    counts = dataset.items.counts[: dataset.num_items]
    ranked = choose_candidates(dataset, queries, candidates)
    dial = _dial(softmax, popularity_alphas, shown_k(ks), counts) if ranked.rows is None else None
    systems = Systems(ks, counts, exact, approximate, dial=dial, allowed=ranked.rows)
    likelihood = None if softmax is None else LikelihoodJudge(softmax)
    with Progress(f"evaluating on {part}", len(queries), "users") as progress:
        for block, judged in ranked.blocks(queries):
            vectors = embed(block)
            if len(judged):
                own = own_items(bonus, judged.queries, exclude_seen=exclude)
                systems.add(judged.queries, vectors[judged.places], exclude, own)
            if likelihood is not None:
                likelihood.add(block, vectors)
            progress.advance(len(block))
    return retrieval_report(
        dataset,
        part,
        ranked.judge(queries),
        systems,
        likelihood,
        resampling=Resampling(seed, num_resamples, level),
        exclude_seen=exclude,
        ranked=ranked,
    )


def quick_metrics(
    queries: EvaluationQueries,
    *,
    embed: Embed,
    exact: Index,
    ks: Sequence[int],
    exclude_seen: bool,
    softmax: CatalogueSoftmax | None = None,
    ranked: RankedCandidates | None = None,
    bonus: Bonus | None = None,
    popular: PopularityList | None = None,
) -> dict[str, float]:
    """Compute the means alone, as a training loop wants them after an epoch.

    Args:
        queries: As `build_queries` gives them, or some of them.
        embed: Gives the vectors of a block of queries: [B, D] or [B, M, D], float32.
        exact: Exact search over the candidates.
        ks: Lengths of the list that is judged.
        exclude_seen: Whether items of a user's history are left out.
        softmax: What the likelihood is that of; None: it is not computed.
        ranked: What is ranked; None: all candidates.
        bonus: As for `evaluate_retrieval`.
        popular: What those get of whom nothing is known, as in `evaluate_retrieval`; None: the
            model ranks for all.

    Returns:
        `recall_at_10` and so on -> mean over the queries; empty without any query. With `softmax`
        also what `LikelihoodJudge.summary` gives.

    Raises:
        ArgumentError: `ks` is empty or holds a number below 1.
    """
    ks = check_ks(ks)
    if len(queries) == 0:
        return {}
    likelihood = None if softmax is None else LikelihoodJudge(softmax)
    ranked = RankedCandidates("all", None, exact.num_candidates) if ranked is None else ranked
    totals: dict[str, float] = {}
    num_judged = 0
    for block, judged in ranked.blocks(queries):
        vectors = embed(block)
        if likelihood is not None:
            likelihood.add(block, vectors)
        asked = judged.queries
        exclude = asked.seen if exclude_seen else Ragged.empty(len(asked))
        hits = search_with_bonus(
            exact.search,
            vectors[judged.places],
            max(ks),
            own_items(bonus, asked, exclude_seen=exclude_seen),
            exclude=exclude,
            allowed=ranked.rows,
        )
        lists, unknown = hits.lists, asked.nothing_known()
        if popular is not None and unknown.any():
            lists = choose_lists(lists, popular.top(max(ks), exclude), unknown)
        for name, values in measure_lists(lists, asked.truth, ks).items():
            totals[name] = totals.get(name, 0.0) + float(values.sum())
        num_judged += len(judged)
    means = {name: total / num_judged for name, total in totals.items() if num_judged}
    return means if likelihood is None else means | likelihood.summary()


def _dial(
    softmax: CatalogueSoftmax | None,
    alphas: Sequence[float],
    k: int,
    counts: NDArray[np.int64],
) -> DialJudge | None:
    if not alphas:
        return None
    if softmax is None:
        raise ArgumentError("`popularity_alphas` must come with `softmax`, for its temperature.")
    dial = PopularityDial(softmax.vectors, log_popularity(counts), softmax.temperature)
    return DialJudge(dial, alphas, k, counts)


def _check(
    dataset: PreparedDataset,
    part: str,
    queries: EvaluationQueries,
    exact: Index,
    approximate: Index | None,
) -> None:
    if len(queries) == 0:
        raise DataError(f"The {part} part of {dataset.path} is empty: nothing to evaluate on.")
    for index in (exact, approximate):
        if index is not None and index.num_candidates != dataset.num_items:
            raise DataError(
                f"The index holds {index.num_candidates} items, {dataset.path} has "
                f"{dataset.num_items}: they do not belong together."
            )
