"""The whole diagnosis on a tiny data set: numbers, file, tables, pictures."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from rich.console import Console

from recsys.data import PreparedDataset, consecutive_pairs
from recsys.diagnosis import (
    KINDS,
    Diagnosis,
    DiagnosisPlan,
    Material,
    Towers,
    diagnose,
    diagnosis_table,
    write_diagnosis_plots,
)
from recsys.diagnosis.plot_bias import plot_bias
from recsys.diagnosis.plot_cosine import plot_cosine
from recsys.diagnosis.plot_popularity import plot_popularity
from recsys.evaluation import Resampling
from recsys.foundations import ArgumentError
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    UserTowerSpec,
    build_two_tower,
    encode_candidates,
)

PLAN = DiagnosisPlan(
    estimators=list(KINDS),
    sample_sizes=[8, 32],
    num_positives=50,
    num_draws=4,
    batch_size=64,
    num_batches=2,
    ties="include",
    target=0.1,
    k=5,
    max_users=100,
    resampling=Resampling(0, 50, 0.9),
)


def make_towers(dataset: PreparedDataset, *, history: str = "none", ridge_dim: int = 0) -> Towers:
    torch.manual_seed(0)
    model = build_two_tower(
        ModelSpec(
            embedding_dim=8,
            user_tower=UserTowerSpec(use_id=True, history=history, features=(), context=()),
            item_tower=ItemTowerSpec(features=()),
            item_bias=True,
            init_std=0.5,
            ridge_dim=ridge_dim,
        ),
        num_users=dataset.num_users,
        num_items=dataset.num_items,
        user_schema=dataset.users.features.schema,
        item_schema=dataset.items.features.schema,
        context_schema=dataset.context_schema,
    )
    if model.ridge is not None:
        model.ridge.set_item_factors(torch.randn(dataset.num_items, ridge_dim))
    vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
    return Towers(model, vectors)


def make_material(dataset: PreparedDataset, *, max_exact_items: int = 1000) -> Material:
    return Material(
        counts=dataset.items.counts[: dataset.num_items],
        pairs=consecutive_pairs(dataset.train, dataset.clock, "include"),
        batch_size=64,
        unigram_share=0.1,
        ess_quantile=0.0,
        burn_in_share=0.25,
        max_exact_items=max_exact_items,
    )


@pytest.fixture(scope="module")
def diagnosis(dataset: PreparedDataset) -> Diagnosis:
    """Diagnose every estimator there is."""
    towers = make_towers(dataset)
    return diagnose(dataset, towers, make_material(dataset), PLAN, {"bundle": None})


def test_every_estimator_is_measured_at_every_size_it_can_have(
    diagnosis: Diagnosis, dataset: PreparedDataset
) -> None:
    sizes = {name: [m.sample_size for m in g] for name, g in diagnosis.by_estimator().items()}
    expected = {name: [8, 32] for name in KINDS}
    expected |= {"full_softmax": [dataset.num_items], "in_batch": [8, 32, 64]}
    assert sizes == expected
    without_step = [
        (one.estimator, one.sample_size) for one in diagnosis.measurements if one.step is None
    ]
    assert without_step == [("in_batch", 8), ("in_batch", 32)]
    candidates = {(m.estimator, m.sample_size): m.candidates for m in diagnosis.measurements}
    assert candidates["mixed", 8] == 64 + 8
    assert candidates["in_batch", 64] == 64
    assert candidates["standard_uniform", 8] == 8


def test_intervals_hold_the_value_and_the_noise_band_is_noise_over_the_root_of_the_draws(
    diagnosis: Diagnosis,
) -> None:
    for one in diagnosis.measurements:
        for error in one.gradients.values():
            assert error.bias.low is not None
            assert error.bias.high is not None
            assert error.bias.low <= error.bias.value * 1.001 + 1e-9
            assert error.bias.value <= error.bias.high * 1.001 + 1e-9
            draws = 4 if one.estimator != "full_softmax" else 1
            assert error.noise_band == pytest.approx(error.noise.value / np.sqrt(draws))
            assert error.bias.value <= error.noise.value * 1.001 + 1e-9  # noise holds the bias
            assert error.is_bias_clear == (error.bias.value > max(2 * error.noise_band, 1e-5))


def test_a_surrogate_has_no_likelihood(diagnosis: Diagnosis) -> None:
    without = {one.estimator for one in diagnosis.measurements if one.loss_bias is None}
    assert without == {"exact_importance", "metropolis_hastings", "monte_carlo"}


def test_the_file_holds_plain_numbers_and_says_what_each_estimator_aims_at(
    diagnosis: Diagnosis, tmp_path: Path
) -> None:
    written = json.loads(diagnosis.write(tmp_path / "diagnosis.json").read_text())
    assert written["format"] == "recsys-diagnosis"
    assert written["format_version"] == 1
    assert len(written["measurements"]) == len(diagnosis.measurements)
    aims = {name: one["aim"] for name, one in written["estimators"].items()}
    assert {name for name, aim in aims.items() if aim == "other"} == {"negative_sampling", "bpr"}
    assert aims["uncorrected_popularity"] == "uncorrected"
    assert aims["uncorrected_uniform"] == "softmax"  # one Q for all: nothing to correct
    first = written["measurements"][0]
    assert first["estimator"] == "full_softmax"
    assert first["gradients"]["scores"]["bias"]["value"] == pytest.approx(0, abs=1e-5)
    assert first["step"]["cosine"]["value"] == pytest.approx(1, abs=1e-5)
    shares = written["recommended_popularity"]["shares_by_decile"]
    assert sum(shares["scores"]) == pytest.approx(1)
    assert written["about"]["num_positives"] == 50
    assert sum(written["about"]["positives_by_decile"]) == 50
    assert written["about"]["batch_spread"] > 0


def test_trackers_get_the_main_numbers(diagnosis: Diagnosis) -> None:
    flat = diagnosis.flat_metrics()
    assert flat["full_softmax_60_step_error"] == pytest.approx(0, abs=1e-5)
    assert flat["standard_popularity_32_noise"] > flat["standard_popularity_32_bias"] > 0
    assert "in_batch_8_step_error" not in flat
    assert np.isfinite(list(flat.values())).all()


def test_the_tables_show_every_size_the_marks_and_the_advice(diagnosis: Diagnosis) -> None:
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(diagnosis_table(diagnosis))
    text = console.export_text()
    assert "50 validation positives, 4 draws" in text
    assert "One step at a batch of 64 training rows, 2 batches" in text
    assert "BPR ‡" in text
    assert "‡ does not aim at the softmax." in text
    assert "importance, adaptive unigram: rows that took the full softmax" in text
    assert "Metropolis-Hastings: proposals that were accepted: " in text
    assert "Note: bundle=null: a fresh model that has not been trained" in text
    assert "from batch to batch the full softmax's own gradient" in text
    assert " ".join(text.split()).endswith(" ".join(diagnosis.advice.sentence.split()))


def test_the_pictures_are_png_files(diagnosis: Diagnosis, tmp_path: Path) -> None:
    paths = write_diagnosis_plots(diagnosis, tmp_path / "plots")
    assert [path.name for path in paths] == ["bias.png", "cosine.png", "popularity.png"]
    for path in paths:
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert path.stat().st_size > 10_000


@pytest.mark.parametrize("plot", [plot_bias, plot_cosine, plot_popularity])
def test_a_picture_says_that_the_model_has_not_been_trained(
    plot: Callable[[Diagnosis], Figure], diagnosis: Diagnosis
) -> None:
    def is_said(bundle: str | None) -> bool:
        figure = plot(replace(diagnosis, about={**diagnosis.about, "bundle": bundle}))
        return any("has not been trained" in text.get_text() for text in figure.texts)

    assert is_said(None)
    assert not is_said("somewhere")


def test_the_pictures_are_drawn_of_the_full_softmax_alone_too(
    dataset: PreparedDataset, tmp_path: Path
) -> None:
    plan = replace(PLAN, estimators=["full_softmax"], num_batches=1)
    towers = make_towers(dataset)
    alone = diagnose(dataset, towers, make_material(dataset), plan, {"bundle": "somewhere"})
    assert len(write_diagnosis_plots(alone, tmp_path)) == 3
    assert alone.about["batch_spread"] is None


def test_what_visits_the_whole_catalogue_is_left_out_of_a_large_one(
    dataset: PreparedDataset,
) -> None:
    plan = replace(PLAN, estimators=["full_softmax", "monte_carlo", "exact_importance"])
    material = make_material(dataset, max_exact_items=10)
    some = diagnose(dataset, make_towers(dataset), material, plan, {})
    reason = f"{dataset.num_items} items are more than max_exact_items=10"
    assert some.skipped == {"monte_carlo": reason, "exact_importance": reason}
    assert list(some.by_estimator()) == ["full_softmax"]


def test_the_same_plan_gives_the_same_numbers_but_for_times(dataset: PreparedDataset) -> None:
    plan = replace(PLAN, estimators=["in_batch", "mixed", "metropolis_hastings", "bigram"])

    def numbers() -> dict[str, float]:
        result = diagnose(dataset, make_towers(dataset), make_material(dataset), plan, {})
        flat = result.flat_metrics()
        return {name: value for name, value in flat.items() if not name.endswith("seconds")}

    assert numbers() == numbers()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"estimators": ["guessing"]}, "`estimators` must be one of full_softmax, "),
        ({"sample_sizes": [0]}, "`sample_sizes` must be above 0, got 0"),
        ({"num_draws": 0}, "`num_draws` must be above 0, got 0"),
        ({"target": float("nan")}, "`target` must be above 0, got nan"),
    ],
)
def test_a_plan_refuses_what_cannot_be_measured(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        replace(PLAN, **changes)  # type: ignore[arg-type]


def test_a_ridge_part_which_no_step_sees_changes_no_number(dataset: PreparedDataset) -> None:
    plan = replace(PLAN, estimators=["full_softmax", "standard_popularity"], sample_sizes=[8])
    alone, joint = (
        diagnose(dataset, towers, make_material(dataset), plan, {}).to_json()
        for towers in (
            make_towers(dataset, history="mean"),
            make_towers(dataset, history="mean", ridge_dim=16),
        )
    )
    assert joint["recommended_popularity"] == alone["recommended_popularity"]
    for one, other in zip(joint["measurements"], alone["measurements"], strict=True):
        for found in (one["step"] or {}, other["step"] or {}):
            found.pop("draw_seconds", None), found.pop("seconds", None)
        assert one == other
