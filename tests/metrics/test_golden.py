"""The metrics against golden cases, most of them also computed by widely used libraries."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recsys.foundations import Ragged
from recsys.metrics import (
    expected_over_ties,
    hit_rate_at_k,
    mrr_at_k,
    ndcg_at_k,
    num_relevant_of,
    pessimistic_hits,
    precision_at_k,
    recall_at_k,
    relevance_of,
    tied_ranks,
)

Cases = Callable[[str], list[Any]]


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


def make_ranked(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda candidate: (-scores[candidate], candidate))


def rows_of(ids: list[str]) -> list[int]:
    return [int(one.removeprefix("d")) for one in ids]


def metrics_at(lists: Ragged, truth: Ragged, k: int) -> dict[str, Any]:
    hits, relevant = relevance_of(lists, truth), num_relevant_of(truth)
    return {
        "recall": recall_at_k(hits, relevant, k),
        "precision": precision_at_k(hits, k),
        "hit": hit_rate_at_k(hits, k),
        "ndcg": ndcg_at_k(hits, relevant, k),
        "mrr": mrr_at_k(hits, k),
    }


def test_ranked_lists_without_ties(golden_cases: Cases) -> None:
    for case in golden_cases("ranking_metrics_no_ties"):
        users = sorted(case.inputs["scores"])
        ranked = [make_ranked(case.inputs["scores"][user]) for user in users]
        assert ranked == [case.expected["ranked"][user] for user in users]
        lists = make_ragged([rows_of(one) for one in ranked])
        truth = make_ragged([rows_of(case.inputs["relevant"][user]) for user in users])
        with_relevant = truth.lengths > 0
        for k in case.inputs["ks"]:
            for name, values in metrics_at(lists, truth, k).items():
                expected = [case.expected["per_user"][user][str(k)][name] for user in users]
                undefined = np.array([value is None for value in expected])
                assert (np.isnan(values) == undefined).all()
                wanted = np.array(expected, float)[~undefined]
                case.check(f"{name}@{k}", values[~undefined], wanted, "float64")
                means = case.expected["aggregate"][str(k)][name]
                mean = values[with_relevant].mean()
                expected_mean = means["mean_over_users_with_relevant"]
                case.check(f"mean {name}@{k}", mean, expected_mean, "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_positive_among_equal_scores(golden_cases: Cases, dtype: str) -> None:
    for case in golden_cases("ranking_metrics_ties"):
        k = case.inputs["k"]
        for query, scores in case.inputs["scores"].items():
            names = sorted(scores)
            matrix = np.array([[scores[name] for name in names]], dtype)
            positive = np.array([names.index(case.inputs["relevant"][query])])
            ranks, expected = tied_ranks(matrix, positive), case.expected[query]
            assert ranks.optimistic.tolist() == [expected["rank"]["optimistic"]]
            assert ranks.pessimistic.tolist() == [expected["rank"]["pessimistic"]]
            assert ranks.mean.tolist() == [expected["rank"]["mean"]]
            for name, value in expected_over_ties(ranks, k).items():
                wanted = expected[f"random_tie_expectation_at_{k}"][name.removesuffix("_rate")]
                case.check(name, value, [wanted], dtype)
            for end in ("optimistic", "pessimistic"):
                place = int(getattr(ranks, end)[0]) - 1
                lists = make_ragged([[*range(1, place + 1), 0]])
                found = metrics_at(lists, make_ragged([[0]]), k)
                for name, wanted in expected[f"{end}_at_{k}"].items():
                    case.check(f"{end} {name}", found[name], [wanted], dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hits_by_score_by_row_and_pessimistic(golden_cases: Cases, dtype: str) -> None:
    for case in golden_cases("factorized_top_k_ties"):
        queries = np.array(case.inputs["query_embeddings"], dtype)
        scores = queries @ np.array(case.inputs["candidate_embeddings"], dtype).T
        positives = np.array(case.inputs["true_candidate"])
        ranks, ks = tied_ranks(scores, positives), np.array(case.inputs["ks"])
        for name, rank in (
            ("score_based", ranks.optimistic),
            ("id_based", ranks.by_row),
            ("pessimistic", ranks.pessimistic),
        ):
            hits = rank[:, None] <= ks[None, :]
            case.check(name, hits, case.expected[f"{name}_hits"], dtype)
            if name in case.expected:
                case.check(f"mean {name}", hits.mean(axis=0), case.expected[name], dtype)

        order = np.argsort(-scores, axis=1, kind="stable")
        lists = make_ragged(order.tolist())
        wanted_order = case.expected["ranked_ids_lower_index_first"]
        assert order[:, : len(wanted_order[0])].tolist() == wanted_order
        found = relevance_of(lists, make_ragged(positives[:, None].tolist()))
        flat = np.take_along_axis(scores, order, axis=1).ravel()
        moved = pessimistic_hits(found, flat, np.ones(len(scores), bool))
        for column, k in enumerate(case.inputs["ks"]):
            wanted = np.array(case.expected["pessimistic_hits"])[:, column]
            case.check(f"list@{k}", hit_rate_at_k(moved, k), wanted, dtype)
