"""The race of estimators with made-up learners: order, times, perplexities, what is written."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from rich.console import Console

from recsys.benchmark import (
    EpochRecord,
    EstimatorRun,
    LanguageResult,
    NextWordData,
    PerplexityJudge,
    Sentences,
    language_table,
    measure_language,
    prepare_next_words,
    print_language,
    write_language,
    write_language_plots,
)
from recsys.data import FeatureSchema, TrainingBatch
from recsys.models import ItemTowerSpec, ModelSpec, TwoTower, UserTowerSpec, build_two_tower


def make_data(*, num_sentences: int = 20, seed: int = 0) -> NextWordData:
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(num_sentences), rng.integers(2, 7, size=num_sentences))
    words = np.append(np.arange(12), rng.integers(12, size=len(owners) - 12))
    return prepare_next_words(
        Sentences(owners, words, 12), validation_share=0.2, test_share=0.2, min_count=1
    )


def make_model(num_rows: int, *, seed: int = 0, std: float = 0.8) -> TwoTower:
    torch.manual_seed(seed)
    nothing = FeatureSchema(())
    user = UserTowerSpec(use_id=False, history_length=3, decay=0.5, exponent=1, history_dropout=0)
    spec = ModelSpec(
        embedding_dim=4,
        user_tower=user,
        item_tower=ItemTowerSpec(id_dropout=0.0),
        item_bias=True,
        init_std=std,
    )
    model = build_two_tower(
        spec,
        num_users=1,
        num_items=num_rows,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
    )
    model.start_at_popularity(np.arange(1, num_rows + 1))
    return model


class MadeUpLearner:
    """Notes what it is given; its loss is what it is told."""

    def __init__(self, name: str, model: TwoTower, notes: list[str], *, fails_at: int = -1) -> None:
        self.model, self.name, self.notes, self.fails_at = model, name, notes, fails_at
        self.batches: list[TrainingBatch] = []

    def start_epoch(self) -> None:
        self.notes.append(self.name)

    def learn(self, batch: TrainingBatch) -> float:
        self.batches.append(batch)
        return math.nan if len(self.batches) == self.fails_at else 2.0

    def statistics(self) -> dict[str, float]:
        return {"sample_size": float(len(self.batches))}


def race(
    data: NextWordData, *, epochs: int = 3, fails_at: int = -1
) -> tuple[LanguageResult, dict[str, MadeUpLearner], list[str]]:
    notes: list[str] = []
    learners = {
        "full_softmax": MadeUpLearner("full_softmax", make_model(data.num_rows), notes),
        "other": MadeUpLearner("other", make_model(data.num_rows), notes, fails_at=fails_at),
    }
    result = measure_language(
        data,
        learners.__getitem__,
        estimators=list(learners),
        epochs=epochs,
        batch_size=8,
        context=3,
        validation_examples=5,
        seed=3,
        settings={"epochs": epochs},
    )
    return result, learners, notes


def slow_perplexity(model: TwoTower, data: NextWordData) -> float:
    """Score the test part word by word from the tables themselves, in float64."""
    tables = {name: table.detach().double() for name, table in model.named_parameters()}
    context_table = tables["user_tower.history_table.weight"]
    vectors, biases = tables["item_tower.ids.weight"], tables["item_tower.bias.weight"]
    words, owners = data.test.events.items.tolist(), data.test.events.users.tolist()
    losses = []
    for here, word in enumerate(words):
        earlier = [words[i] for i in range(here) if owners[i] == owners[here]][::-1][:3]
        if not earlier:
            continue
        weights = [0.5**age for age in range(len(earlier))]
        query = torch.zeros(4, dtype=torch.float64)
        for weight, one in zip(weights, earlier, strict=True):
            query += weight / sum(weights) * context_table[one]
        scores = [float(query @ vectors[c] + biases[c, 0]) for c in range(data.num_rows)]
        losses.append(math.log(sum(math.exp(s) for s in scores)) - scores[word])
    return math.exp(sum(losses) / len(losses))


def test_perplexity_equals_a_slow_sum_word_by_word() -> None:
    data = make_data()
    model = make_model(data.num_rows).train()
    judge = PerplexityJudge(data.test, context=3, max_examples=None, seed=0)
    found = judge.perplexity(model, data.num_rows, "test")
    assert found == pytest.approx(slow_perplexity(model, data), rel=1e-5)
    assert judge.num_examples == len(data.test.examples)
    assert model.training


def test_fewer_words_are_scored_where_that_is_asked_for_the_same_ones_every_time() -> None:
    data = make_data()
    model = make_model(data.num_rows)

    def score(seed: int, most: int) -> float:
        judge = PerplexityJudge(data.test, context=3, max_examples=most, seed=seed)
        assert judge.num_examples == min(most, len(data.test.examples))
        return judge.perplexity(model, data.num_rows, "test")

    assert score(0, 4) == score(0, 4)
    assert len({score(seed, 4) for seed in range(5)}) > 1
    assert score(0, 1000) == pytest.approx(score(1, 1000), rel=1e-6)


def test_epochs_are_taken_in_turn_on_the_same_batches() -> None:
    data = make_data()
    result, learners, notes = race(data)
    assert notes == ["full_softmax", "other", "other", "full_softmax", "full_softmax", "other"]
    first, second = (learners[name].batches for name in ("full_softmax", "other"))
    assert len(first) == len(second) == 3 * -(-len(data.train.examples) // 8)
    for one, other in zip(first, second, strict=True):
        assert one.positives.tolist() == other.positives.tolist()
        assert one.histories.tolist() == other.histories.tolist()
    [_, run] = result.runs
    assert [epoch.examples for epoch in run.epochs] == 3 * [len(data.train.examples)]
    assert [epoch.loss for epoch in run.epochs] == 3 * [2.0]
    assert run.epochs[1].statistics["sample_size"] == len(first) * 2 / 3
    assert result.facts["validation_examples_scored"] == 5
    assert result.facts["test_examples_scored"] == len(data.test.examples)
    assert run.last.test_perplexity == pytest.approx(
        slow_perplexity(learners["other"].model, data), rel=1e-5
    )


def test_a_model_whose_loss_is_not_finite_is_left_alone_from_there_on() -> None:
    data = make_data()
    in_epoch = -(-len(data.train.examples) // 8)
    result, learners, notes = race(data, fails_at=in_epoch + 2)
    assert notes == ["full_softmax", "other", "other", "full_softmax", "full_softmax"]
    assert len(learners["other"].batches) == in_epoch + 2
    reference, run = result.runs
    assert [epoch.diverged for epoch in run.epochs] == [False, True]
    assert run.epochs[1].examples == 16
    assert len(reference.epochs) == 3
    assert result.perplexity_ratio(run) is None


def make_run(name: str, seconds: list[float], perplexities: list[float]) -> EstimatorRun:
    records = [
        EpochRecord(s, 100, 5.0, p + 1, p, {"sample_size": 64.0 * (n + 1)})
        for n, (s, p) in enumerate(zip(seconds, perplexities, strict=True))
    ]
    return EstimatorRun(name, tuple(records))


def make_result() -> LanguageResult:
    names = ("num_words", "num_rows", "num_rare_words", "train_examples", "test_examples_scored")
    more = ("validation_examples_scored", "test_examples_of_unseen_words")
    facts = dict.fromkeys((*names, *more), 100)
    runs = (
        make_run("full_softmax", [40.0, 50.0, 42.0], [500.0, 420.0, 400.0]),
        make_run("unigram_fixed", [2.0, 2.0, 3.0], [520.0, 419.0, 404.0]),
        make_run("unigram_small", [1.0, 1.0], [9000.0, math.inf]),
        make_run("sampled_softmax", [2.0, 2.0, 2.0], [700.0, 600.0, 500.0]),
    )
    return LanguageResult({"epochs": 3}, facts, 1100.0, runs)


def test_ratios_are_to_the_full_softmax_as_worked_by_hand() -> None:
    # Medians of 42 and 2 s an epoch. Within 5 % of 400 is 420: after 2 epochs both.
    result = make_result()
    full, good, bad, poor = result.runs
    assert result.speed_up(good) == pytest.approx(21.0)
    assert result.perplexity_ratio(good) == pytest.approx(1.01)
    assert [result.epochs_to_equal(run) for run in result.runs] == [2, 2, None, None]
    assert result.perplexity_ratio(full) == 1
    assert result.perplexity_ratio(bad) is None
    assert result.seconds_an_epoch(poor) == 2.0


def test_without_the_full_softmax_there_are_no_ratios() -> None:
    whole = make_result()
    result = LanguageResult(whole.settings, whole.facts, 1100.0, whole.runs[1:])
    for run in result.runs:
        assert result.speed_up(run) is None
        assert result.perplexity_ratio(run) is None
        assert result.epochs_to_equal(run) is None
    assert language_table(result).row_count == 3


def test_the_file_is_versioned_and_holds_null_for_what_is_not_finite(tmp_path: Path) -> None:
    write_language(make_result(), tmp_path / "language.json")
    written = json.loads((tmp_path / "language.json").read_text(encoding="utf-8"))
    assert (written["format"], written["format_version"]) == ("recsys-language", 1)
    assert written["machine"]["threads"] == torch.get_num_threads()
    assert written["unigram_perplexity"] == 1100.0
    good, bad = (written["estimators"][name] for name in ("unigram_fixed", "unigram_small"))
    assert good["speed_up"] == pytest.approx(21.0)
    assert good["epochs"][2] == {
        "seconds": 3.0,
        "examples": 100,
        "loss": 5.0,
        "validation_perplexity": 405.0,
        "test_perplexity": 404.0,
        "sample_size": 192.0,
    }
    assert bad["epochs"][1]["test_perplexity"] is None
    assert (bad["diverged"], bad["perplexity_ratio"], good["diverged"]) == (True, None, False)


def test_the_table_has_a_line_an_epoch_and_a_verdict_an_estimator(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_language(make_result())
    lines = capsys.readouterr().out.splitlines()
    start = next(n for n, line in enumerate(lines) if "importance, unigram, fixed" in line)
    cells = [[cell.strip() for cell in lines[start + n].split("│")[1:-1]] for n in range(3)]
    assert cells == [
        ["importance, unigram, fixed", "1", "2.0", "521.0", "520.0", "+4.0%", "64", "-", "-"],
        ["21.0 times as fast", "2", "2.0", "420.0", "419.0", "-0.2%", "128", "-", "-"],
        ["equal after 2 epochs", "3", "3.0", "405.0", "404.0", "+1.0%", "192", "-", "-"],
    ]
    [line] = [line for line in lines if "diverged" in line]
    assert "42.0 times as fast" in line
    assert "Unigram model: 1,100.0 on test" in " ".join(" ".join(lines).split())


def test_the_table_fits_a_terminal_of_a_hundred_columns() -> None:
    console = Console(width=100, record=True)
    console.print(language_table(make_result()))
    text = console.export_text()
    assert "…" not in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_two_pictures_are_written_even_where_little_is_finite(tmp_path: Path) -> None:
    paths = write_language_plots(make_result(), tmp_path / "new")
    assert [path.name for path in paths] == ["language_by_epoch.png", "language_by_seconds.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    lone = make_run("unigram_small", [1.0], [math.inf])
    facts = make_result().facts
    write_language_plots(LanguageResult({}, facts, 1100.0, (lone,)), tmp_path)
    assert len(list(tmp_path.glob("*.png"))) == 2


def test_the_pictures_hold_what_is_close_and_cut_off_what_is_far(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits: list[tuple[float, float]] = []
    save = Figure.savefig

    def keep(figure: Figure, *args: Any, **options: Any) -> None:
        limits.extend(axes.get_ylim() for axes in figure.axes)
        save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    runs = (
        make_run("full_softmax", [40.0, 40.0], [440.0, 430.0]),
        make_run("unigram_fixed", [1.0, 1.0], [410.0, 400.0]),
        make_run("unigram_small", [1.0, 1.0], [8000.0, 17000.0]),
    )
    write_language_plots(LanguageResult({}, make_result().facts, 1100.0, runs), tmp_path)
    assert len(limits) == 2
    for low, high in limits:
        assert 300 < low < 400  # all of the good ones, and the line of 1.05 * 430
        assert 1.05 * 430 < high < 600
