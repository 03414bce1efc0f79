"""A thousand changes with folds and searches between them, against an index that is rebuilt."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recsys.index import IndexSettings
from recsys.metrics import overlap_at_k
from tests.index.changing_catalogue import (
    FORMS,
    OPERATIONS,
    ChangingCatalogue,
    assert_same,
    search,
)

APPROXIMATE = {
    "hnsw": IndexSettings(kind="hnsw", m=8, ef_construction=40, ef_search=24),
    "hnsw_sq8": IndexSettings(kind="hnsw_sq8", m=8, ef_construction=40, ef_search=24),
    "ivf_flat": IndexSettings(kind="ivf_flat", num_lists=16, num_probes=9),
    "ivf_sq8": IndexSettings(kind="ivf_sq8", num_lists=16, num_probes=9),
    "ivf_fp16": IndexSettings(kind="ivf_fp16", num_lists=16, num_probes=9),
    "ivf_pq": IndexSettings(kind="ivf_pq", num_lists=8, num_probes=6, num_codes=4, code_bits=4),
    "ivf_pq_fast": IndexSettings(kind="ivf_pq_fast", num_lists=8, num_probes=6, num_codes=4),
}


def test_a_flat_index_gives_after_each_change_what_a_rebuilt_exact_index_gives() -> None:
    catalogue = ChangingCatalogue.make(120, 6, IndexSettings(kind="flat"), seed=0)
    rng = np.random.default_rng(1)
    folds = 0
    for number in range(1000):
        catalogue.change(str(rng.choice(OPERATIONS)))
        if rng.random() < 0.03:
            catalogue.fold(retrain=bool(rng.random() < 0.5))
            folds += 1
        k = int(rng.choice([1, 5, 20, len(catalogue.vectors) + 7]))
        num_queries = int(rng.choice([1, 3, 20]))  # few go through FAISS
        asked = catalogue.ask(FORMS[number % len(FORMS)], num_queries=num_queries, k=k)
        wanted, index = catalogue.rebuilt(None).search(asked), catalogue.index()
        assert_same(search(index, asked), wanted)
        assert_same(search(index.exact, asked), wanted)
    assert folds > 15
    assert len(catalogue.vectors) > 300
    assert np.array_equal(np.asarray(catalogue.index().vectors), catalogue.vectors)


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_an_approximate_index_finds_after_changes_what_a_rebuilt_one_finds(kind: str) -> None:
    catalogue = ChangingCatalogue.make(500, 8, APPROXIMATE[kind], seed=2)
    rng = np.random.default_rng(3)
    found: list[float] = []
    rebuilt: list[float] = []
    for number in range(1000):
        catalogue.change(str(rng.choice(OPERATIONS)))
        if number % 125 == 60:
            catalogue.fold(retrain=number % 250 == 60)
        if number % 50:
            continue
        index, exact = catalogue.index(), catalogue.rebuilt(None)
        again = catalogue.rebuilt(APPROXIMATE[kind])
        for form in FORMS:
            asked = catalogue.ask(form, num_queries=20, k=10)
            truth = exact.search(asked)
            assert_same(search(index.exact, asked), truth)
            hits = search(index, asked)
            assert hits.lengths.tolist() == truth.lengths.tolist()
            only = replace(asked, allowed=hits.lists)  # its score and order are the exact ones
            assert_same(hits, exact.search(only))
            found.extend(overlap_at_k(hits.lists, truth.lists, 10))
            rebuilt.extend(overlap_at_k(again.search(asked).lists, truth.lists, 10))
    assert len(found) == 20 * len(FORMS) * 20
    assert np.nanmean(rebuilt) < 1  # or there would be nothing to lose
    assert np.nanmean(found) >= np.nanmean(rebuilt) - 0.01


class ChangesOfAFewItems(RuleBasedStateMachine):
    """Changes in any order to a catalogue so small that it is often empty or all changed."""

    @initialize(count=st.integers(1, 8), seed=st.integers(0, 2**16))
    def begin(self, count: int, seed: int) -> None:
        self.catalogue = ChangingCatalogue.make(count, 2, IndexSettings(kind="flat"), seed)

    @rule(operation=st.sampled_from(OPERATIONS))
    def change(self, operation: str) -> None:
        self.catalogue.change(operation)

    @rule(retrain=st.booleans())
    def fold(self, retrain: bool) -> None:
        self.catalogue.fold(retrain=retrain)

    @rule(
        form=st.sampled_from(FORMS),
        k=st.integers(1, 12),
        num_queries=st.sampled_from([0, 1, 4, 12]),
    )
    def look(self, form: str, k: int, num_queries: int) -> None:
        asked = self.catalogue.ask(form, num_queries=num_queries, k=k)
        wanted, index = self.catalogue.rebuilt(None).search(asked), self.catalogue.index()
        assert_same(search(index, asked), wanted)
        assert_same(search(index.exact, asked), wanted)

    @invariant()
    def everything_live_is_given_once(self) -> None:
        if hasattr(self, "catalogue"):
            query = np.ones((1, 2), np.float32)
            hits = self.catalogue.index().search(query, 10_000)
            assert np.sort(hits.candidate_rows).tolist() == self.catalogue.live.tolist()


TestChangesOfAFewItems = ChangesOfAFewItems.TestCase
TestChangesOfAFewItems.settings = hypothesis_settings(
    max_examples=40, stateful_step_count=20, deadline=None
)
