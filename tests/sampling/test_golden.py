"""Draw probabilities and expected counts against golden values, in every dtype of a case.

Q is float64 inside; float32 is what a draw hands on, from counts given in float32.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from recsys.foundations import make_generator
from recsys.sampling import (
    AliasTable,
    DistinctSampler,
    DrawRequest,
    ExactPopularity,
    LearnedUnigramProposal,
    LogUniformProposal,
    PopularityProposal,
    Proposal,
    Sampler,
    UniformProposal,
    WithReplacementSampler,
    draw,
    inclusion_probability,
    inclusion_probability_without_replacement,
    log_inclusion_probability,
    popularity_probabilities,
)

Cases = Callable[[str], list[Any]]


class Scripted:
    """A proposal as it is, but for its draws, which are given."""

    def __init__(self, proposal: Proposal, rows: list[int]) -> None:
        self._proposal, self._rows = proposal, rows
        self.num_candidates = proposal.num_candidates

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        drawn, self._rows = self._rows[:num_draws], self._rows[num_draws:]
        return torch.tensor(drawn)

    def log_probability(self, rows: Tensor) -> Tensor:
        return self._proposal.log_probability(rows)

    def levels(self) -> tuple[Tensor, Tensor]:
        return self._proposal.levels()

    def update(self, positive_rows: Tensor) -> None:
        self._proposal.update(positive_rows)

    def state_dict(self) -> dict[str, Tensor]:
        return self._proposal.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._proposal.load_state_dict(state)


def make_proposal(inputs: dict[str, Any], kind: str, dtype: str) -> Proposal:
    num_candidates = inputs["range_max"]
    match kind:
        case "uniform":
            return UniformProposal(num_candidates)
        case "log_uniform":  # the case's rows are sorted by falling count
            return LogUniformProposal(np.arange(num_candidates, 0, -1, dtype=dtype))
        case _:
            counts = [0] * inputs.get("num_reserved_ids", 0) + inputs["unigrams"]
            return PopularityProposal(np.array(counts, dtype=dtype), alpha=inputs["distortion"])


def make_sampler(proposal: Proposal, step: dict[str, Any], *, unique: bool) -> Sampler:
    """Build the sampler whose next draw is the case's."""
    rows = step["sampled_candidates"]
    if not unique:
        return WithReplacementSampler(Scripted(proposal, rows), num_sampled=len(rows))
    repeats = rows[:1] * (step["num_tries"] - len(rows))
    return DistinctSampler(Scripted(proposal, repeats + rows), num_sampled=len(rows))


def draw_and_count(sampler: Sampler, probabilities: Tensor, dtype: str) -> tuple[list[int], Tensor]:
    """Draw once; give the rows and the expected counts of the catalogue, [C], in the dtype."""
    if dtype == "float64":
        sample = sampler.sample(DrawRequest(torch.tensor([0])), make_generator(0))
        everything = torch.arange(len(probabilities))
        return sample.rows.tolist(), sample.log_expected_count(everything).exp()
    reachable = probabilities.nonzero()[:, 0]
    drawn = draw(sampler, DrawRequest(reachable), make_generator(0))
    counts = torch.zeros(len(probabilities))
    counts[reachable] = drawn.positive_log_q.exp()
    assert torch.equal(counts[drawn.rows], drawn.log_q.exp())
    return drawn.rows.tolist(), counts


def check_draw(case: Any, proposal: Proposal, step: dict[str, Any], dtype: str) -> Tensor:
    """Check one draw of a case; give the expected counts of the catalogue."""
    expected = step["expected"]
    probabilities = proposal.log_probability(torch.arange(proposal.num_candidates)).exp()
    case.check("probabilities", probabilities, expected["probabilities"], dtype)
    sampler = make_sampler(proposal, step, unique=case.inputs["unique"])
    rows, counts = draw_and_count(sampler, probabilities, dtype)
    assert rows == step["sampled_candidates"]
    case.check("sampled", counts[rows], expected["sampled_expected_count"], dtype)
    return counts


@pytest.mark.parametrize("kind", ["uniform", "log_uniform", "fixed_unigram"])
def test_expected_counts(golden_cases: Cases, kind: str) -> None:
    for case in golden_cases(f"expected_count_{kind}"):
        for dtype in case.dtypes:
            proposal = make_proposal(case.inputs, kind, dtype)
            step = case.inputs | {"expected": case.expected}
            counts = check_draw(case, proposal, step, dtype)
            case.check("all", counts, case.expected["expected_count_per_class"], dtype)


def test_expected_counts_of_a_unigram_that_is_learned(golden_cases: Cases) -> None:
    for case in golden_cases("expected_count_learned_unigram"):
        for dtype in case.dtypes:
            proposal = LearnedUnigramProposal(case.inputs["range_max"])
            for step, expected in zip(case.inputs["steps"], case.expected["steps"], strict=True):
                before = proposal.state_dict()["counts"]
                case.check("counts", before, expected["counts_before"], dtype)
                counts = check_draw(case, proposal, step | {"expected": expected}, dtype)
                true_rows = torch.tensor(step["true_classes"])
                case.check("true", counts[true_rows], expected["true_expected_count"], dtype)
                proposal.update(true_rows.flatten())


def test_power_popularity(golden_cases: Cases) -> None:
    for case in golden_cases("power_popularity"):
        for dtype in case.dtypes:
            counts = np.array(case.inputs["counts"], dtype=dtype)
            for alpha, expected in case.expected["probabilities"].items():
                actual = popularity_probabilities(counts, float(alpha)).astype(dtype)
                case.check(f"alpha {alpha}", actual, expected, dtype)
            if "alpha0_all_items" in case.expected:
                actual = popularity_probabilities(counts, 0.0).astype(dtype)
                case.check("alpha 0", actual, case.expected["alpha0_all_items"], dtype)


def test_the_cumulative_table_of_word2vec(golden_cases: Cases) -> None:
    for case in golden_cases("gensim_cum_table"):
        inputs, expected = case.inputs, case.expected
        p = popularity_probabilities(np.array(inputs["counts"]), inputs["exponent"])
        case.check("probabilities", p, expected["probabilities"], "float64")
        table = np.round(inputs["domain"] * p.cumsum())
        difference = np.abs(table - np.array(expected["cum_table"]))
        assert difference.max() <= case.tolerance["cum_table_abs"]


def test_alias_table(golden_cases: Cases) -> None:
    for case in golden_cases("alias_table"):
        for dtype in case.dtypes:
            table = AliasTable(np.array(case.inputs["weights"], dtype=dtype))
            actual = table.draw_probabilities().numpy().astype(dtype)
            case.check("probabilities", actual, case.expected["probabilities"], dtype)


def test_batch_inclusion(golden_cases: Cases) -> None:
    for case in golden_cases("batch_inclusion_probability"):
        batch_size, expected = case.inputs["batch_size"], case.expected
        for dtype in case.dtypes:
            counts = np.array(case.inputs["counts"], dtype=dtype)
            rows, popularity = torch.arange(len(counts)), ExactPopularity(counts)
            p = popularity_probabilities(counts, 1.0)
            log_p = PopularityProposal(counts, alpha=1.0).log_probability(rows)
            without = inclusion_probability_without_replacement(counts, batch_size)
            actual = {
                "probability_per_draw": p,
                "inclusion_with_replacement": inclusion_probability(p, batch_size),
                "inclusion_without_replacement": without,
                "expected_count": popularity.log_rate(rows, batch_size).exp().numpy(),
            }
            for name, values in actual.items():
                case.check(name, values.astype(dtype), expected[name], dtype)
            logs = log_inclusion_probability(log_p, batch_size).exp().numpy().astype(dtype)
            case.check("by logs", logs, expected["inclusion_with_replacement"], dtype)


def test_inclusion_of_tiny_probabilities(golden_cases: Cases) -> None:
    for case in golden_cases("inclusion_probability_tiny_p"):
        p, num_draws = np.array(case.inputs["probability_per_draw"]), case.inputs["batch_size"]
        actual = inclusion_probability(p, num_draws)
        case.check("inclusion", actual, case.expected["inclusion"], "float64")
        logs = log_inclusion_probability(torch.from_numpy(p).log(), num_draws).exp()
        case.check("by logs", logs, case.expected["inclusion"], "float64")
