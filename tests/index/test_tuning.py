"""The tuned index against brute force on queries that tuned nothing, and the search for a dial."""

import logging
from collections.abc import Mapping
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import ConfigError, held_threads, set_threads, thread_bound
from recsys.index import (
    ExactIndex,
    FaissIndex,
    Index,
    IndexSettings,
    TuningTarget,
    find_centroids,
    plan_index,
    tune_index,
)
from recsys.index.asked import Asked
from recsys.index.dial import find_largest, find_setting
from recsys.index.families import Skipped, graph_families, index_bytes, list_counts, list_families
from recsys.index.goals import LatencyGoal, RecallGoal
from recsys.index.graph_probe import GraphProbe
from recsys.index.race import Times

KINDS = ["hnsw", "hnsw_sq8", "ivf_flat", "ivf_sq8", "ivf_fp16", "ivf_pq_fast"]


def make_vectors(count: int, *, dim: int = 16, seed: int = 0) -> NDArray[np.float32]:
    """Points around 40 centres: neighbours exist."""
    centres = np.random.default_rng(7).standard_normal((40, dim))
    rng = np.random.default_rng(seed)
    points = centres[rng.integers(0, 40, count)] + 0.5 * rng.standard_normal((count, dim))
    return points.astype(np.float32)


def make_target(**changed: Any) -> TuningTarget:
    given_ = {"target_recall": 0.9, "target_k": 10, "memory_gb": None, "queries_at_once": 16}
    return TuningTarget(
        **given_ | {"exact_below": 0, "num_queries": 200, "build_minutes": 1} | changed
    )


def test_the_tuned_index_meets_the_target_by_brute_force_on_other_queries() -> None:
    vectors, others = make_vectors(4000), make_vectors(300, seed=2)
    index, tuning = tune_index(
        vectors, make_vectors(200, seed=1), IndexSettings(m=8), make_target(), seed=0
    )
    assert sorted({trial.kind for trial in tuning.trials}) == sorted([*KINDS, "flat"])
    assert [trial.outcome for trial in tuning.trials].count("chosen") == 1
    assert tuning.chosen is not None
    assert tuning.chosen.kind == index.kind == tuning.settings.kind
    best = np.argsort(-(others.astype(np.float64) @ vectors.T.astype(np.float64)), axis=1)[:, :10]
    found = index.search(others, 10).candidate_rows.reshape(300, 10)
    shares = [len(set(a) & set(b)) / 10 for a, b in zip(found.tolist(), best.tolist(), strict=True)]
    assert np.mean(shares) > 0.88  # the target within the spread of 300 queries


def test_every_timed_trial_met_the_target_and_every_other_says_why_not() -> None:
    _, tuning = tune_index(
        make_vectors(3000), make_vectors(200, seed=1), IndexSettings(m=8), make_target(), seed=0
    )
    assert len(tuning.trials) >= 7
    for trial in tuning.trials:
        if trial.queries_per_second is not None:
            assert trial.recall is not None
            assert trial.recall >= 0.9
            assert trial.outcome in ("chosen", "slower")
        else:
            assert trial.outcome == "below the target" or trial.reason
    assert tuning.num_queries == 100


def test_queries_of_several_interests_are_tuned_on_as_they_are() -> None:
    queries = make_vectors(120, seed=1).reshape(60, 2, 16)
    index, tuning = tune_index(
        make_vectors(2500), queries, IndexSettings(m=8), make_target(), seed=0
    )
    assert tuning.num_queries == 30
    assert index.search(queries, 5).lengths.tolist() == [5] * 60


def test_a_memory_budget_leaves_out_what_would_not_fit() -> None:
    vectors = make_vectors(4000)  # 0.256 MB
    tried = [
        *list_families(IndexSettings(), 4000, 16, num_lists=100, most_bytes=0.4e6),
        *graph_families(IndexSettings(), 4000, 16, most_bytes=0.4e6),
    ]
    left_out = {one.kind: one.reason for one in tried if isinstance(one, Skipped)}
    assert sorted(left_out) == ["hnsw", "hnsw_sq8", "ivf_flat", "ivf_fp16"]
    assert "with the item vectors, more than the 0.0004 GB allowed" in left_out["hnsw"]
    target = make_target(memory_gb=1e-6)
    index, tuning = tune_index(vectors, make_vectors(60, seed=1), IndexSettings(), target, seed=0)
    assert index.kind == "flat"
    assert {one.outcome for one in tuning.trials[1:]} == {"not tried"}


def test_what_cannot_be_trained_or_divided_is_left_out_with_the_reason() -> None:
    few = {one.kind: one.reason for one in skipped(IndexSettings(), 90)}
    assert "trained by 90 items, where it needs 624" in few["ivf_pq_fast"]  # 39 for 16 codes each
    odd = skipped(IndexSettings(num_codes=5), 4000)
    assert [one.kind for one in odd] == ["ivf_pq_fast"]
    assert "must divide the 16 dimensions" in odd[0].reason


def skipped(settings: IndexSettings, count: int) -> list[Skipped]:
    lists = list_counts(settings, count)[-1]
    tried = list_families(settings, count, 16, num_lists=lists)
    return [one for one in tried if isinstance(one, Skipped)]


@pytest.mark.parametrize("kind", [*KINDS, "flat", "ivf_pq"])
def test_the_estimated_memory_is_that_of_the_written_index(kind: str) -> None:
    settings = IndexSettings(kind=kind, num_lists=40)
    vectors = make_vectors(12_000)
    plan = plan_index(settings, num_candidates=12_000, dim=16)
    written = faiss.serialize_index(FaissIndex.build(vectors, settings).inner)
    assert index_bytes(plan, settings, 12_000, 16) == pytest.approx(len(written), rel=0.1)


def test_small_catalogues_and_few_queries_are_searched_exactly_unmeasured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    vectors, queries = make_vectors(50), make_vectors(19, seed=1)
    index, tuning = tune_index(
        vectors, queries, IndexSettings(), make_target(exact_below=51), seed=0
    )
    assert (index.kind, tuning.trials, tuning.chosen) == ("flat", (), None)
    assert tuning.about == "exact search: fewer than 51 items (index.exact_below)"
    with caplog.at_level(logging.WARNING):
        index, _ = tune_index(vectors, queries, IndexSettings(), make_target(), seed=0)
    assert index.kind == "flat"
    assert "19 queries are too few to measure on; 20 are needed" in caplog.text


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 50))
def test_the_dial_is_the_smallest_value_that_meets_the_target(
    largest: int, needed: int, smallest: int
) -> None:
    smallest = min(smallest, largest)

    def recalls(value: int) -> NDArray[np.float64]:
        return np.full(5, min(value / needed, 1.0))  # rises evenly; meets 0.9 from 0.9 needed on

    found = find_setting(recalls, 0.9, largest=largest, smallest=smallest)
    meeting = [value for value in range(smallest, largest + 1) if value / needed >= 0.9]
    assert found.meets == bool(meeting)
    if meeting:
        assert meeting[0] <= found.value <= meeting[0] * 17 / 16 + 1


@given(st.integers(1, 3000), st.integers(0, 4000), st.integers(1, 50))
def test_the_largest_value_that_fits_is_found_within_a_sixteenth(
    largest: int, most: int, smallest: int
) -> None:
    smallest = min(smallest, largest)
    found = find_largest(lambda value: value <= most, largest=largest, smallest=smallest)
    if most < smallest:
        assert found is None
    else:
        assert found is not None
        assert found <= min(most, largest) <= found * 17 / 16 + 1


def test_a_latency_budget_takes_the_most_recall_within_it() -> None:
    vectors, queries = make_vectors(3000), make_vectors(200, seed=1)
    target = make_target(latency_ms=1e4)  # even exact search
    index, tuning = tune_index(vectors, queries, IndexSettings(m=8), target, seed=0)
    assert (index.kind, len(tuning.trials)) == ("flat", 1)
    assert "within index.latency_ms" in tuning.about


def test_under_a_latency_budget_nothing_slower_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    # A made-up clock: exact search takes 9 ms, 10 lists and places of a graph cost 1 ms.
    monkeypatch.setattr("recsys.index.goals.race", told_race)
    monkeypatch.setattr("recsys.index.tuner.race", told_race)
    settings = IndexSettings(m=8, num_lists=60)
    target = make_target(latency_ms=2.0, target_recall=0.5)
    index, tuning = tune_index(
        make_vectors(3000), make_vectors(200, seed=1), settings, target, seed=0
    )
    dials = {one.kind: one.dial.get("num_probes") for one in tuning.trials}
    assert dials["ivf_flat"] in (17, 18)  # nine tenths of the budget, within a sixteenth
    assert index.kind != "flat"
    assert tuning.trials[0].outcome == "too slow"
    assert tuning.chosen is not None
    assert tuning.chosen.block_ms is not None
    assert tuning.chosen.block_ms <= 2.0
    recalls = [one.recall or 0 for one in tuning.trials if one.outcome in ("chosen", "finds less")]
    assert tuning.chosen.recall == max(recalls)


def test_where_nothing_is_quick_enough_a_sentence_says_so_and_recall_decides(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("goals", "tuner"):
        monkeypatch.setattr(f"recsys.index.{module}.race", told_race)
    target = make_target(latency_ms=1e-6)
    with caplog.at_level(logging.WARNING):
        _, tuning = tune_index(
            make_vectors(3000), make_vectors(200, seed=1), IndexSettings(m=8), target, seed=0
        )
    words = "no index answers 16 queries at once within 1e-06 ms (index.latency_ms), the quickest"
    assert words in caplog.text
    assert tuning.about.startswith(words)
    assert tuning.target == target
    assert tuning.chosen is not None
    assert (tuning.chosen.recall or 0) >= 0.9


def told_race(indexes: Mapping[str, Index], asked: Asked, **_: Any) -> Times:
    """Give a fixed time by how far an index searches, whatever the machine does."""

    def seconds(index: Index) -> float:
        if not isinstance(index, FaissIndex):
            return 9e-3
        graph = index.kind in ("hnsw", "hnsw_sq8")
        return 1e-4 * (index.settings.ef_search if graph else index.settings.num_probes or 1)

    return Times(
        {name: [seconds(index)] * 3 for name, index in indexes.items()}, len(asked.queries)
    )


def test_seen_items_are_left_out_as_lookups_leave_them_out() -> None:
    vectors, queries = make_vectors(1500), make_vectors(30, seed=1)
    exact = ExactIndex(vectors)
    seen = exact.search(queries, 20).lists  # the best 20 of each
    asked = Asked.of(queries, seen, exact, 10)
    scores = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    best = np.argsort(-scores, axis=1)[:, 20:30]
    assert [set(rows.tolist()) for rows in best] == [
        set(asked.truth[i].tolist()) for i in range(30)
    ]
    assert asked.recalls(exact).tolist() == [1.0] * 30
    assert asked.block(3, 2)[1] is not None
    _, tuning = tune_index(
        vectors, queries, IndexSettings(m=8), make_target(), seed=0, exclude=seen
    )
    assert tuning.chosen is not None


def test_graphs_that_are_slow_on_a_part_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recsys.index.graph_probe.race", told_race)
    monkeypatch.setattr("recsys.index.graph_probe._PART", 500)
    vectors = make_vectors(3000)
    probe = GraphProbe.of(vectors, IndexSettings(kind="hnsw", m=4))
    asked = Asked.of(make_vectors(20, seed=1), None, ExactIndex(vectors), 10)
    lists = FaissIndex.build(vectors, IndexSettings(kind="ivf_flat", num_probes=9))
    target = make_target()
    told = probe.too_slow(lists, "IVF", asked, target, RecallGoal(target))  # 0.9 ms against 1
    assert told == "a graph of 500 items is already slower than IVF"
    wide = lists.with_dial(num_probes=11)  # 1.1 ms
    assert probe.too_slow(wide, "IVF", asked, target, RecallGoal(target)) == ""
    told = probe.too_slow(lists, "IVF", asked, target, LatencyGoal(target, 0.5))
    assert told == (
        "a graph of 500 items already takes 1 ms a block of 20, more than index.latency_ms"
    )


def test_centroids_are_those_of_clusters_and_reproducible() -> None:
    corners = np.eye(3, dtype=np.float32)
    vectors = np.repeat(corners, 200, axis=0)
    found = find_centroids(vectors, 3)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(corners, axis=0), atol=1e-6)
    many = make_vectors(3000)
    np.testing.assert_array_equal(find_centroids(many, 20), find_centroids(many, 20))


def test_a_dial_that_gains_nothing_is_given_up_and_noise_needs_a_margin() -> None:
    asked: list[int] = []

    def flat(value: int) -> NDArray[np.float64]:
        asked.append(value)
        return np.full(4, 0.7)

    assert not find_setting(flat, 0.9, largest=1 << 20).meets
    assert asked == [1, 2, 4]
    spread = np.array([1.0, 0.84] * 50)  # mean 0.92, standard error 0.008
    assert find_setting(lambda _: spread, 0.9, largest=1).meets
    assert not find_setting(lambda _: spread[:4], 0.9, largest=1).meets  # 0.04


def test_impossible_targets_are_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"target_recall": 0.0}, "target_recall must be above 0 and at most 1, got 0.0"),
        ({"memory_gb": 0.0}, "memory_gb must be above 0"),
        ({"target_k": 0}, "target_k must be at least 1, got 0"),
        ({"latency_ms": 0.0}, "latency_ms must be above 0"),
        ({"search_threads": 0}, "search_threads must be at least 1, got 0"),
        ({"num_queries": 19}, "num_queries must be at least 20"),
    ]
    for changed, words in refused:
        with pytest.raises(ConfigError, match=words):
            make_target(**changed)


def test_held_threads_are_given_back() -> None:
    before = thread_bound()
    try:
        set_threads(2)
        with held_threads(1):
            assert thread_bound() == 1
        assert thread_bound() == 2
    finally:
        set_threads(before or 1)


def test_a_graph_that_would_take_too_long_to_build_is_not_tried() -> None:
    vectors, queries = make_vectors(21_000), make_vectors(40, seed=1)
    target = make_target(build_minutes=1e-6, num_queries=40)
    _, tuning = tune_index(vectors, queries, IndexSettings(m=4, ef_construction=4), target, seed=0)
    reasons = {trial.kind: trial.reason for trial in tuning.trials if trial.outcome == "not tried"}
    assert {"hnsw", "hnsw_sq8"} <= set(reasons)
    assert "more than the 1e-06 of index.build_minutes" in reasons["hnsw"]


@pytest.mark.parametrize(("count", "lists"), [(1, None), (15, None), (300, 301)])
def test_kinds_that_would_be_built_flat_are_not_tried(count: int, lists: int | None) -> None:
    settings = IndexSettings(m=8, num_lists=lists)
    _, tuning = tune_index(
        make_vectors(count), make_vectors(20, seed=1), settings, make_target(), seed=0
    )
    reasons = {trial.kind: trial.reason for trial in tuning.trials if trial.outcome == "not tried"}
    assert reasons["ivf_pq_fast"] == f"{count} items are too few to train it"
    assert ("ivf_flat" in reasons) == (lists is not None)
