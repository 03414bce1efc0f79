"""Draw probabilities and expected counts against golden values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from recsys.sampling import (
    AliasTable,
    DrawRequest,
    ExactPopularity,
    PopularityProposal,
    Sample,
    UniformProposal,
    WithReplacementSampler,
    inclusion_probability,
    inclusion_probability_without_replacement,
    popularity_probabilities,
)


def make_proposal(inputs: dict[str, Any]) -> PopularityProposal | UniformProposal:
    if "unigrams" not in inputs:
        return UniformProposal(inputs["range_max"])
    counts = np.array([0] * inputs.get("num_reserved_ids", 0) + inputs["unigrams"])
    return PopularityProposal(counts, alpha=inputs["distortion"])


def make_sample(inputs: dict[str, Any]) -> Sample:
    sampler = WithReplacementSampler(make_proposal(inputs), num_sampled=inputs["num_sampled"])
    return sampler.sample(DrawRequest(torch.tensor([1])), torch.Generator())


def test_expected_counts_with_replacement(golden_cases: Callable[[str], list[Any]]) -> None:
    kinds = ("expected_count_uniform", "expected_count_fixed_unigram")
    cases = [case for kind in kinds for case in golden_cases(kind) if not case.inputs["unique"]]
    for case in cases:
        sample = make_sample(case.inputs)
        everything = torch.arange(case.inputs["range_max"])
        counts = sample.log_expected_count(everything).exp()
        case.check("all", counts, case.expected["expected_count_per_class"], "float64")
        drawn = counts[torch.tensor(case.inputs["sampled_candidates"])]
        case.check("sampled", drawn, case.expected["sampled_expected_count"], "float64")
    assert cases


def test_power_popularity(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("power_popularity"):
        counts = np.array(case.inputs["counts"])
        for alpha, expected in case.expected["probabilities"].items():
            actual = popularity_probabilities(counts, float(alpha))
            case.check(f"alpha {alpha}", actual, expected, "float64")
        if "alpha0_all_items" in case.expected:
            actual = popularity_probabilities(counts, 0.0)
            case.check("alpha 0", actual, case.expected["alpha0_all_items"], "float64")


def test_alias_table(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("alias_table"):
        table = AliasTable(np.array(case.inputs["weights"]))
        actual = table.draw_probabilities()
        case.check("probabilities", actual, case.expected["probabilities"], "float64")


def test_batch_inclusion(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("batch_inclusion_probability"):
        counts, batch_size = np.array(case.inputs["counts"]), case.inputs["batch_size"]
        p, expected = popularity_probabilities(counts, 1.0), case.expected
        with_replacement = inclusion_probability(p, batch_size)
        without = inclusion_probability_without_replacement(counts, batch_size)
        in_batch = ExactPopularity(counts).log_rate(torch.arange(len(counts)), batch_size)
        case.check("p", p, expected["probability_per_draw"], "float64")
        case.check("with", with_replacement, expected["inclusion_with_replacement"], "float64")
        case.check("without", without, expected["inclusion_without_replacement"], "float64")
        case.check("count", in_batch.exp(), expected["expected_count"], "float64")


def test_inclusion_of_tiny_probabilities(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("inclusion_probability_tiny_p"):
        p = np.array(case.inputs["probability_per_draw"])
        actual = inclusion_probability(p, case.inputs["batch_size"])
        case.check("inclusion", actual, case.expected["inclusion"], "float64")
