"""The choice of a bonus for repeats: against a slow ranking; noise, habits, ties, nobody to ask."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data import (
    FilterSettings,
    LogOptions,
    PreparedDataset,
    SplitSettings,
    interactions_from_table,
    prepare_dataset,
    read_prepared,
)
from recsys.evaluation import (
    Embed,
    EvaluationQueries,
    RankedCandidates,
    bonus_of,
    build_queries,
    embed_queries,
    rank_by_vectors,
)
from recsys.foundations import Ragged
from recsys.index import ExactIndex, Hits
from recsys.models import encode_candidates
from recsys.training import Validator, fit
from recsys.training.repeats_choice import choose_repeats

NUM_ITEMS, EVENTS, LENGTH = 130, 12, 8
PAIRS = [(0.0, 1.0), (0.3, 0.5), (0.3, 1.0), (2.0, 0.5), (2.0, 1.0), (20.0, 0.9)]


def make_popularity() -> NDArray[np.float64]:
    shares = 1 / np.arange(3, NUM_ITEMS + 3)
    return np.asarray(shares / shares.sum())


def make_log(*, num_users: int, again: float, seed: int = 0) -> list[tuple[int, int]]:
    """Make users who take an item by its popularity, or one of their last four `again`."""
    rng, shares = np.random.default_rng(seed), make_popularity()
    rows = []
    for user in range(num_users):
        taken: list[int] = []
        for _ in range(EVENTS):
            repeats = bool(taken) and rng.random() < again
            taken.append(
                int(rng.choice(taken[-4:])) if repeats else int(rng.choice(NUM_ITEMS, p=shares))
            )
        rows += [(user, item) for item in taken]
    return rows


def prepare(folder: Path, rows: list[tuple[int, int]]) -> PreparedDataset:
    users, items = zip(*rows, strict=True)
    log = pa.table(
        {
            "user_id": [f"u{user:05}" for user in users],
            "item_id": [f"i{item:05}" for item in items],
            "timestamp": pa.array(np.arange(len(rows)) * 10**6 + 1_700_000_000_000_000),
        }
    )
    return read_prepared(
        prepare_dataset(
            interactions_from_table(log, LogOptions(timestamp_unit="us"), name="made", sources=[]),
            items=None,
            users=None,
            output=folder / "dataset",
            filters=FilterSettings(duplicates="keep_all"),
            split=SplitSettings(rule="leave_last_out"),
            seed=0,
            exclude_seen=False,
        )
    )


@pytest.fixture(scope="module")
def habits(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    return prepare(tmp_path_factory.mktemp("habits"), make_log(num_users=300, again=0.5))


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    return prepare(tmp_path_factory.mktemp("noise"), make_log(num_users=600, again=0.0))


def by_popularity(dataset: PreparedDataset) -> tuple[Embed, ExactIndex]:
    """Give the scores of a model that knows popularity and nothing else."""
    counts = dataset.items.counts[: dataset.num_items].astype(np.float64)
    logs = np.log(np.maximum(counts, 0.5))[:, None].astype(np.float32)
    return (lambda block: np.ones((len(block), 1), np.float32)), ExactIndex(logs)


def at_random(dataset: PreparedDataset, seed: int) -> tuple[Embed, ExactIndex]:
    rng = np.random.default_rng(seed)
    users = rng.standard_normal((len(dataset.users), 3), dtype=np.float32)
    items = rng.standard_normal((dataset.num_items, 3), dtype=np.float32)
    return (lambda block: users[block.user_rows]), ExactIndex(items)


def everything(dataset: PreparedDataset) -> RankedCandidates:
    return RankedCandidates("all", None, dataset.num_items)


def choose(
    dataset: PreparedDataset, model: tuple[Embed, ExactIndex], pairs: list[tuple[float, float]]
) -> tuple[float, float]:
    return choose_repeats(
        pairs,
        build_queries(dataset, "validation"),
        embed=model[0],
        exact=model[1],
        length=LENGTH,
        ranked=everything(dataset),
    )


def slow_ndcg(
    dataset: PreparedDataset, model: tuple[Embed, ExactIndex], weight: float, decay: float
) -> float:
    """Rank all candidates for one user after the other; one item is right."""
    queries, values = build_queries(dataset, "validation"), []
    for place, vector in enumerate(model[0](queries)):
        scores = (model[1].vectors @ vector).astype(np.float64)
        counts = np.zeros(len(scores))
        for age, item in enumerate(queries.histories[place][::-1][:LENGTH]):
            counts[item] += decay**age
        scores += weight * np.log(1 + counts)
        [right] = queries.truth[place]
        rank = 1 + int((scores > scores[right]).sum()) if right < len(scores) else 101
        values.append(1 / np.log2(1 + rank) if rank <= 100 else 0.0)
    return float(np.mean(values))


def test_the_chosen_pair_ranks_best_in_a_slow_loop(
    habits: PreparedDataset, noise: PreparedDataset
) -> None:
    found = set()
    for dataset in (habits, noise):
        for model in (at_random(dataset, 0), at_random(dataset, 1), by_popularity(dataset)):
            slow = [slow_ndcg(dataset, model, *pair) for pair in PAIRS]
            chosen = choose(dataset, model, PAIRS)
            assert slow[PAIRS.index(chosen)] == pytest.approx(max(slow), abs=1e-6)
            found.add(chosen)
    assert len(found) > 1


def test_where_repeats_are_noise_no_bonus_is_chosen_and_where_users_have_habits_one_is(
    habits: PreparedDataset, noise: PreparedDataset
) -> None:
    assert choose(noise, by_popularity(noise), PAIRS) == (0.0, 1.0)
    weight, _ = choose(habits, by_popularity(habits), PAIRS)
    assert weight > 0


def test_only_what_is_ranked_is_judged(habits: PreparedDataset) -> None:
    embed, exact = by_popularity(habits)
    queries = build_queries(habits, "validation")
    few = np.arange(0, habits.num_items, 3)
    ranked = RankedCandidates("cold", few, len(few))
    options: dict[str, Any] = {"embed": embed, "exact": exact, "length": LENGTH, "ranked": ranked}
    assert choose_repeats(PAIRS, queries, **options)[0] > 0
    nobody = replace(ranked, rows=np.zeros(0, np.int64), num=0)
    assert choose_repeats(PAIRS, queries, **options | {"ranked": nobody}) == PAIRS[0]


def test_users_are_embedded_and_searched_for_once_and_of_equal_pairs_the_first_is_taken(
    habits: PreparedDataset,
) -> None:
    embed, exact = by_popularity(habits)
    embedded, searches = [], []

    class Counting(ExactIndex):
        def search(self, *args: Any, **options: Any) -> Hits:
            searches.append(options["allowed"])
            return super().search(*args, **options)

    def count(block: EvaluationQueries) -> NDArray[np.float32]:
        embedded.append(len(block))
        return embed(block)

    same = [(0.0, 1.0), (0.0, 0.5), (0.0, 0.9)]
    for pairs in (same, same[::-1]):
        embedded.clear()
        searches.clear()
        assert choose(habits, (count, Counting(exact.vectors)), pairs) == pairs[0]
        assert sum(embedded) == len(build_queries(habits, "validation"))
        assert len(searches) == 2  # the best, and the own items


def test_a_validator_gives_the_model_what_it_chose_and_measures_with_it(
    habits: PreparedDataset, make_run: Any
) -> None:
    model = make_run(data=habits).step.model
    plain = Validator(habits, k=5, max_users=None, seed=0).measure(model)
    assert "repeats_weight" not in plain
    validator = Validator(habits, k=5, max_users=None, seed=0, repeats=PAIRS)
    scores = validator.measure(model)
    chosen = (scores["repeats_weight"], scores["repeats_decay"])
    assert chosen in PAIRS[1:]
    assert (model.spec.repeats_weight, model.spec.repeats_decay) == chosen
    assert scores["recall_at_5"] > plain["recall_at_5"]
    assert scores["log_likelihood"] == plain["log_likelihood"]  # that of the towers
    vectors = encode_candidates(model, habits.items.features, habits.num_items)
    rank = rank_by_vectors(
        lambda block: embed_queries(model, block),
        ExactIndex(vectors),
        everything(habits),
        bonus=bonus_of(model),
    )
    queries = build_queries(habits, "validation")
    lists = rank(queries, 5, Ragged.empty(len(queries)))
    found = [queries.truth[place][0] in lists[place] for place in range(len(queries))]
    assert scores["recall_at_5"] == pytest.approx(np.mean(found), abs=1e-12)
    # What is chosen does not depend on what was chosen last.
    model.set_repeats(20.0, 0.9)
    assert validator.measure(model) == scores


def test_the_model_ends_with_the_bonus_of_its_best_epoch(
    habits: PreparedDataset, make_run: Any
) -> None:
    run = make_run(data=habits, epochs=3)
    chosen = iter([(2.0, 0.5), (7.0, 0.9), (3.0, 1.0)])
    recalls = iter([0.1, 0.3, 0.2])

    class Scripted:
        k = 5

        def measure(self, model: Any) -> dict[str, float]:
            weight, decay = next(chosen)
            model.set_repeats(weight, decay)
            recall = {"recall_at_5": next(recalls)}
            return recall | {"repeats_weight": weight, "repeats_decay": decay}

    result = fit(replace(run, validator=Scripted()), resume=False)
    assert result.best_epoch == 2
    spec = run.step.model.spec
    assert (spec.repeats_weight, spec.repeats_decay) == (7.0, 0.9)
    assert result.records[1]["validation_repeats_weight"] == 7.0


def test_without_validation_nothing_is_chosen_with_a_warning(
    habits: PreparedDataset, make_run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    empty = replace(habits, validation=habits.validation.take(np.zeros(0, dtype=np.int64)))
    validator = Validator(empty, k=5, max_users=None, seed=0, repeats=PAIRS)
    assert "the first model.repeats.weight is taken" in caplog.text
    caplog.clear()
    assert validator.measure(make_run(data=habits).step.model) == {}
    with caplog.at_level(logging.WARNING):
        Validator(empty, k=5, max_users=None, seed=0, repeats=PAIRS[:1])
    assert not caplog.messages
