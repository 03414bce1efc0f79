"""Rankings under one evaluation, each against popularity and, where there is one, a model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from recsys.data import PreparedDataset
from recsys.evaluation.candidates import RankedCandidates, choose_candidates
from recsys.evaluation.comparison import ComparedSystem, Comparison
from recsys.evaluation.estimates import Estimate, Resampling, plain_estimates
from recsys.evaluation.measures import ListJudge, Values, check_ks
from recsys.evaluation.part_facts import count_part, describe_part
from recsys.evaluation.popularity import PopularityList
from recsys.evaluation.queries import EvaluationQueries, Reads, build_queries
from recsys.evaluation.rankers import (
    FilledRank,
    PopularityRanker,
    Rank,
    Ranker,
    rank_blocks,
    rank_by_history,
)
from recsys.foundations import DataError

MODEL, POPULARITY = "model", "popularity"


def compare_rankers(
    dataset: PreparedDataset,
    part: str,
    rankers: Mapping[str, Ranker],
    *,
    ks: Sequence[int],
    resampling: Resampling,
    details: Mapping[str, Mapping[str, Any]],
    skipped: Mapping[str, str],
    candidates: str = "all",
    model: Callable[[RankedCandidates], Rank] | None = None,
    reads: Reads | None = None,
) -> Comparison:
    """Rank by each system and by popularity, and judge all lists alike.

    Truth, exclusion, metrics and intervals are those of a model's report. A list that a ranker
    leaves short goes on with popular items.

    Args:
        dataset: The prepared data set.
        part: `validation` or `test`.
        rankers: Name -> system. Popularity by training events is always there beside them.
        ks: Lengths of the list that is judged.
        resampling: How intervals are made.
        details: Name -> plain values that go along into the file.
        skipped: Name -> why a system was left out.
        candidates: What is ranked: "all" or "cold", as in `evaluate_retrieval`.
        model: Makes the ranking of a model, which is then compared with every other system as
            `model`; None: there is none.
        reads: Of whom that model reads anything, as in `evaluate_retrieval`.

    Raises:
        DataError: Nobody has events in the part, or no item of it is cold.
        ArgumentError: `ks` is empty or holds a number below 1.
    """
    ks = check_ks(ks)
    queries = build_queries(dataset, part).read_by(reads)
    if len(queries) == 0:
        raise DataError(f"The {part} part of {dataset.path} is empty: nothing to evaluate on.")
    ranked = choose_candidates(dataset, queries, candidates)
    ranks = {} if model is None else {MODEL: model(ranked)}
    popularity = PopularityRanker(dataset.items.counts[: dataset.num_items])
    for name, ranker in {POPULARITY: popularity, **rankers}.items():
        ranks[name] = rank_by_history(ranker, ranked)
    judged = {
        name: _judge(dataset, queries, rank, ranked, ks=ks, name=name)
        for name, rank in ranks.items()
    }
    values = {name: judge.values() for name, (judge, _) in judged.items()}
    seen, asked = dataset.exclude_seen, ranked.judge(queries)
    return Comparison(
        about=describe_part(dataset, part, seen, ranked),
        ks=ks,
        level=resampling.level,
        counts=count_part(dataset, asked, seen, ranked),
        systems={
            name: ComparedSystem(
                metrics=resampling.means(values[name]) | plain_estimates(judge.coverage()),
                difference=_difference(values, name, POPULARITY, resampling),
                behind_model=_difference(values, MODEL, name, resampling),
                num_filled_users=num_filled,
                details=details.get(name, {}),
            )
            for name, (judge, num_filled) in judged.items()
        },
        chance=ranked.chance(ks),
        skipped=dict(skipped),
        per_user=_per_user(dataset, asked, values),
    )


def _judge(
    dataset: PreparedDataset,
    queries: EvaluationQueries,
    rank: Rank,
    ranked: RankedCandidates,
    *,
    ks: tuple[int, ...],
    name: str,
) -> tuple[ListJudge, int]:
    """Judge one system; count the lists that popular items had to fill, too."""
    counts, seen = dataset.items.counts[: dataset.num_items], dataset.exclude_seen
    filled = FilledRank(rank, PopularityList(counts, ranked.rows))
    judge, what = ListJudge(ks, counts, ranked.num), f"ranking by {name}"
    for block, lists in rank_blocks(queries, filled, ranked, ks[-1], exclude_seen=seen, what=what):
        judge.add(lists, block.truth)
    return judge, filled.num_filled


def _difference(
    values: Mapping[str, Values], first: str, second: str, resampling: Resampling
) -> dict[str, Estimate]:
    if first == second or first not in values:
        return {}
    others = values[second]
    return resampling.means({name: one - others[name] for name, one in values[first].items()})


def _per_user(
    dataset: PreparedDataset, queries: EvaluationQueries, values: Mapping[str, Values]
) -> pa.Table:
    columns: dict[str, object] = {
        "user_id": dataset.users.vocabulary.ids_of(queries.user_rows),
        "num_relevant": queries.truth.lengths,
        "history_length": queries.histories.lengths,
    }
    for name, some in values.items():
        columns |= {f"{name}_{metric}": one for metric, one in some.items()}
    return pa.table(columns)
