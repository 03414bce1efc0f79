"""From what the systems did for each user to a report."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation.candidates import RankedCandidates
from recsys.evaluation.estimates import Estimate, Resampling, plain_estimates
from recsys.evaluation.likelihood import LikelihoodJudge
from recsys.evaluation.measures import Values, shown_k
from recsys.evaluation.part_facts import count_part, describe_part
from recsys.evaluation.queries import EvaluationQueries
from recsys.evaluation.report import Report
from recsys.evaluation.slices import slice_items, slice_users
from recsys.evaluation.systems import Systems

_TIES_MATTER_ABOVE = 0.001
_SEEN_MATTER_ABOVE = 0.05


def retrieval_report(
    dataset: PreparedDataset,
    part: str,
    queries: EvaluationQueries,
    systems: Systems,
    likelihood: LikelihoodJudge | None,
    *,
    resampling: Resampling,
    exclude_seen: bool,
    ranked: RankedCandidates,
) -> Report:
    """Make the report of systems that have judged all queries of a part.

    Args:
        dataset: The prepared data set.
        part: `validation` or `test`.
        queries: All queries of the part whose lists were judged.
        systems: After the last block.
        likelihood: Likewise; None where there is none.
        resampling: How intervals are made.
        exclude_seen: Whether items of a user's history were left out.
        ranked: What was ranked.

    Returns:
        The report.
    """
    ks, counts = systems.ks, dataset.items.counts[: dataset.num_items]
    slice_k = shown_k(ks)
    values = {"model": systems.model.values(), "popularity": systems.popularity.values()}
    ranks = {"model": systems.model.ranks(), "popularity": systems.popularity.ranks()}
    recall = {system: some[f"recall_at_{slice_k}"] for system, some in values.items()}
    difference = {name: one - values["popularity"][name] for name, one in values["model"].items()}
    metrics = resampling.means(values["model"]) | plain_estimates(systems.model.coverage())
    through_index = _through_index(values["model"], systems, resampling)
    ties = _tie_summary(systems.ties())
    fallback = queries.nothing_known()
    numbers = count_part(dataset, queries, exclude_seen, ranked)
    about, probable = describe_part(dataset, part, exclude_seen, ranked), {}
    if likelihood is not None:
        about |= {"temperature": likelihood.temperature}
        numbers |= likelihood.event_counts()
        probable = likelihood.estimates(resampling)
    return Report(
        about=about,
        ks=ks,
        slice_k=slice_k,
        level=resampling.level,
        counts=numbers,
        metrics=metrics,
        likelihood=probable,
        through_index=through_index,
        popularity=resampling.means(values["popularity"])
        | plain_estimates(systems.popularity.coverage()),
        difference=resampling.means(difference),
        chance=ranked.chance(ks),
        ties=ties,
        slices=slice_items(queries, counts, ranks, slice_k, resampling)
        | slice_users(queries, recall, resampling),
        popularity_dial=[] if systems.dial is None else systems.dial.points(resampling),
        warnings=_tie_warnings(metrics, ties, ks) + _seen_warnings(numbers),
        per_user=_per_user(dataset, queries, values, fallback),
    )


def _through_index(exact: Values, systems: Systems, resampling: Resampling) -> dict[str, Estimate]:
    """Estimate what comes through the index, and of recall what that loses, user by user."""
    found = systems.index.values()
    if not found:
        return {}
    lost = {
        f"recall_lost_at_{k}": exact[f"recall_at_{k}"] - found[f"recall_at_{k}"] for k in systems.ks
    }
    return resampling.means({**found, **lost}) | plain_estimates(systems.index.coverage())


def _tie_summary(ties: Values) -> dict[str, float]:
    return {
        name: float(values.sum() if name.startswith("tied") else values.mean())
        for name, values in ties.items()
    }


def _tie_warnings(
    metrics: dict[str, Estimate], ties: dict[str, float], ks: tuple[int, ...]
) -> tuple[str, ...]:
    sentences = []
    for k in ks:
        recall, lowest = metrics[f"recall_at_{k}"].value, ties[f"pessimistic_recall_at_{k}"]
        if recall - lowest > _TIES_MATTER_ABOVE:
            sentences.append(
                f"recall@{k} is {recall:.4f}, but {lowest:.4f} if a relevant item stands behind "
                f"every item of equal score: many scores are equal "
                f"({ties[f'tied_at_{k}']:,.0f} users have a tie across rank {k})."
            )
    return tuple(sentences)


def _seen_warnings(counts: dict[str, int]) -> tuple[str, ...]:
    share = counts["num_seen_positives"] / counts["num_positives"]
    if share <= _SEEN_MATTER_ABOVE:
        return ()
    return (
        f"{share:.0%} of the relevant items are ones that the user had already, and those are "
        "never shown; if repeats are the point, set exclude_seen=false.",
    )


def _per_user(
    dataset: PreparedDataset,
    queries: EvaluationQueries,
    values: dict[str, Values],
    fallback: NDArray[np.bool_],
) -> pa.Table:
    columns: dict[str, object] = {
        "user_id": dataset.users.vocabulary.ids_of(queries.user_rows),
        "num_relevant": queries.truth.lengths,
        "history_length": queries.histories.lengths,
        "fallback": fallback,
    }
    columns |= values["model"]
    columns |= {
        f"popularity_{name}": one
        for name, one in values["popularity"].items()
        if name.startswith("recall")
    }
    return pa.table(columns)
