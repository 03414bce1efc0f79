"""The benchmark `language` on a made-up text: every estimator learns what the words follow."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from pipelines.benchmark import benchmark
from recsys.benchmark import LanguageResult, prepare_next_words, read_sentences
from recsys.config import BenchmarkConfig, compose_config
from recsys.config.build_language import build_learner
from recsys.foundations import ConfigError, DataError

NUM_WORDS = 20
NUM_SENTENCES = 400
ALL = [
    "full_softmax",
    "unigram_fixed",
    "unigram_adaptive",
    "unigram_small",
    "bigram_fixed",
    "bigram_adaptive",
    "sampled_softmax",
]
SMALL = {
    "name": "language",
    "threads": 1,
    "language.min_count": 1,
    "language.context": 3,
    "language.batch_size": 64,
    "language.embedding_dim": 16,
    "language.learning_rate": 0.2,
    "language.epochs": 3,
    "language.num_sampled": 64,
    "language.small_sampled": 4,
    "language.unigram_block": 16,
    "language.unigram_min_ess": 12,
    "language.unigram_max_samples": 400,
    "language.bigram_sampled": 16,
    "language.bigram_block": 8,
    "language.bigram_min_ess": 6,
    "language.bigram_max_samples": 200,
}


@pytest.fixture(scope="module")
def chain() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Make the chances of the next word: four in five that the chain takes one certain step."""
    chances = np.full((NUM_WORDS, NUM_WORDS), 0.2 / NUM_WORDS)
    following = np.random.default_rng(1).permutation(NUM_WORDS)
    chances[np.arange(NUM_WORDS), following] += 0.8
    return chances


@pytest.fixture(scope="module")
def log(chain: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write sentences of that chain."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("log") / "words.csv"
    lines = ["user_id,item_id,timestamp"]
    for sentence in range(NUM_SENTENCES):
        word = int(rng.integers(NUM_WORDS))
        for position in range(8):
            lines.append(f"s{sentence},w{word},{position}")
            word = int(rng.choice(NUM_WORDS, p=chain[word]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def compose(log: Path | None, **changes: Any) -> BenchmarkConfig:
    keys = {f"language.{name}": value for name, value in changes.items()}
    given = {} if log is None else {"language.interactions": str(log)}
    return compose_config("benchmark", BenchmarkConfig, SMALL | given | keys)


@pytest.fixture(scope="module")
def run(log: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[LanguageResult, Path]:
    """Run the stage with all estimators; give what it found and where it wrote."""
    folder = tmp_path_factory.mktemp("run")
    result = benchmark(compose(log), folder).language
    assert result is not None
    return result, folder


def test_every_estimator_comes_close_to_the_entropy_of_the_chain(
    run: tuple[LanguageResult, Path], chain: Any
) -> None:
    result, _ = run
    best = math.exp(-float((chain * np.log(chain)).sum(axis=1).mean()))  # 3.6
    assert result.unigram_perplexity == pytest.approx(NUM_WORDS, rel=0.1)
    assert [one.name for one in result.runs] == ALL
    for one in result.runs:
        if one.name == "unigram_small":
            continue  # four draws of twenty words: see below
        found = [epoch.test_perplexity for epoch in one.epochs]
        assert found == sorted(found, reverse=True), one.name
        assert 0.9 * best < found[-1] < 2 * best, one.name
        assert one.last.validation_perplexity == pytest.approx(found[-1], rel=0.15)


def test_a_large_sample_ends_within_five_percent_of_the_full_softmax(
    run: tuple[LanguageResult, Path],
) -> None:
    result, _ = run
    ratios = {one.name: result.perplexity_ratio(one) for one in result.runs}
    for name in ("unigram_fixed", "unigram_adaptive"):
        assert ratios[name] == pytest.approx(1, abs=0.05), ratios


def test_the_adaptive_sample_grows_as_the_model_sharpens(
    run: tuple[LanguageResult, Path],
) -> None:
    result, _ = run
    sizes = {
        one.name: [epoch.statistics.get("sample_size", 0.0) for epoch in one.epochs]
        for one in result.runs
    }
    grown = sizes["unigram_adaptive"]
    assert 16 < grown[0] < min(grown[1:]), grown
    assert sizes["unigram_fixed"] == 3 * [64.0]
    assert sizes["unigram_small"] == 3 * [4.0]
    assert sizes["full_softmax"] == 3 * [0.0]


def test_a_small_sample_diverges_as_the_paper_warns(run: tuple[LanguageResult, Path]) -> None:
    result, _ = run
    [small] = [one for one in result.runs if one.name == "unigram_small"]
    assert small.last.test_perplexity > 2 * result.unigram_perplexity


def test_results_pictures_and_a_table_are_left(run: tuple[LanguageResult, Path]) -> None:
    result, folder = run
    assert sorted(path.name for path in folder.iterdir()) == [
        "language.json",
        "language_by_epoch.png",
        "language_by_seconds.png",
    ]
    written = json.loads((folder / "language.json").read_text(encoding="utf-8"))
    assert set(written["estimators"]) == set(ALL)
    assert written["settings"]["num_sampled"] == 64
    assert "interactions" not in written["settings"]
    assert written["facts"]["train_examples"] == 320 * 7
    assert written["facts"]["test_examples_scored"] == result.facts["test_examples"] == 40 * 7


def test_all_estimators_begin_with_the_same_weights(log: Path) -> None:
    config = compose(log).language
    data = prepare_next_words(
        read_sentences(log), validation_share=0.1, test_share=0.1, min_count=1
    )
    torch.manual_seed(5)
    first = build_learner(config, data, "full_softmax", seed=0).model.state_dict()
    before = torch.get_rng_state()
    for name in ALL[1:]:
        other = build_learner(config, data, name, seed=0).model.state_dict()
        for key, value in first.items():
            assert_close(other[key], value, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_same_seed_gives_the_same_numbers(log: Path, tmp_path: Path) -> None:
    config = compose(log, epochs=1, estimators=["unigram_adaptive", "bigram_fixed"])
    found = []
    for name in ("one", "other"):
        result = benchmark(config, tmp_path / name).language
        assert result is not None
        found.append(
            [(r.last.test_perplexity, r.last.loss, r.last.statistics) for r in result.runs]
        )
    assert found[0] == found[1]


def test_rare_words_share_a_row_and_every_word_is_scored(log: Path, tmp_path: Path) -> None:
    text = log.read_text(encoding="utf-8").splitlines()
    text[-3] = f"s{NUM_SENTENCES - 1},once,5"  # a word of the test part alone
    path = tmp_path / "words.csv"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    changes: dict[str, Any] = {"epochs": 1, "estimators": ["unigram_fixed"]}
    facts = {}
    for min_count in (1, 3):
        config = compose(path, min_count=min_count, **changes)
        result = benchmark(config, tmp_path / str(min_count)).language
        assert result is not None
        assert math.isfinite(result.runs[0].last.test_perplexity)
        facts[min_count] = result.facts
    assert (facts[1]["num_rows"], facts[1]["num_rare_words"]) == (NUM_WORDS + 1, 0)
    assert (facts[3]["num_rows"], facts[3]["num_rare_words"]) == (NUM_WORDS + 1, 1)
    assert facts[1]["test_examples_scored"] == facts[3]["test_examples_scored"] == 40 * 7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min_count": 0}, "language.min_count must be at least 1"),
        ({"test_share": 0}, "language.test_share must lie between 0 and 1"),
        ({"test_share": 0.6, "validation_share": 0.4}, "must be below 1, got 1"),
        ({"estimators": []}, "language.estimators must name one or more, each once, got []"),
        ({"estimators": ["full_softmax", "full_softmax"]}, "each once"),
        ({"estimators": ["nce"]}, "language.estimators must be one of full_softmax"),
        ({"decay": 0}, "language.decay must be above 0 and at most 1, got 0"),
        ({"exponent": 2}, "language.exponent must be from 0 to 1"),
        ({"unigram_share": 0}, "language.unigram_share must be above 0"),
        ({"learning_rate": 0}, "language.learning_rate must be above 0"),
        ({"ess_quantile": 1}, "language.ess_quantile must be at least 0 and below 1"),
        ({"unigram_min_ess": -1}, "language.unigram_min_ess must be at least 0"),
        ({"validation_examples": 0}, "language.validation_examples must be at least 1"),
        (
            {"unigram_max_samples": 15},
            "language.unigram_max_samples must be at least 16, got 15.",
        ),
        (
            {"bigram_max_samples": 7},
            "language.bigram_max_samples must be at least 8, got 7.",
        ),
        (
            {"bigram_min_ess": 201},
            "language.bigram_min_ess must be at most language.bigram_max_samples=200, got 201: "
            "a sample is never worth more than its size.",
        ),
        (
            {"learning_rate": 1e300},
            "language.learning_rate must be at most 3.4e+38 in size, got 1e+300.",
        ),
    ],
)
def test_refuses_impossible_settings_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        compose(Path("words.csv"), **changes)
    assert words in str(refusal.value)


def test_a_log_must_be_given_and_hold_a_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name=language needs a log"):
        compose(None)
    path = tmp_path / "words.csv"
    path.write_text("user_id,item_id,timestamp\n1,a,0\n1,b,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="got none in the validation part"):
        benchmark(compose(path), tmp_path)
