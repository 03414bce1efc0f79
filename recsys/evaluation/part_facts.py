"""What a report states of the part it was made on."""

from recsys.data import PreparedDataset
from recsys.evaluation.candidates import RankedCandidates
from recsys.evaluation.queries import EvaluationQueries, history_rule
from recsys.foundations import is_among


def describe_part(
    dataset: PreparedDataset, part: str, exclude_seen: bool, ranked: RankedCandidates
) -> dict[str, object]:
    """Say on what and by which rules the catalogue was ranked."""
    return {
        "part": part,
        "split": dataset.manifest.get("split"),
        "dataset_fingerprint": dataset.fingerprint,
        "clock": dataset.clock,
        "history": history_rule(dataset, part),
        "exclude_seen": exclude_seen,
        "candidates": ranked.rule,
        "ranking": f"{ranked.describe()}; score, then row",
    }


def count_part(
    dataset: PreparedDataset,
    queries: EvaluationQueries,
    exclude_seen: bool,
    ranked: RankedCandidates,
) -> dict[str, int]:
    """Count users, items and relevant items, and what was left out or out of reach.

    Args:
        dataset: The prepared data set.
        queries: Those whose lists were judged.
        exclude_seen: Whether items of a user's history were left out.
        ranked: What was ranked.
    """
    width = len(dataset.items)
    pairs = queries.truth.owners() * width + queries.truth.rows
    seen = queries.seen.owners() * width + queries.seen.rows
    return {
        "num_users": len(queries),
        "num_new_users": int((~queries.known).sum()),
        "num_fallback_users": int(queries.nothing_known().sum()),
        "num_users_without_relevant": queries.num_without_relevant,
        "num_items": dataset.num_items,
        "num_ranked_items": ranked.num,
        "num_positives": len(pairs),
        "num_positives_not_ranked": queries.num_left_out,
        "num_unknown_positives": int((queries.truth.rows >= dataset.num_items).sum()),
        "num_seen_positives": int(is_among(pairs, seen).sum()) if exclude_seen else 0,
    }
