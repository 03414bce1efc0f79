"""The memory: what it holds and for how long, its Q against its content over many steps."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError, make_generator
from recsys.sampling import (
    Draw,
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    MemorySampler,
    MixedSampler,
    Sample,
    draw,
)

COUNTS = torch.tensor([5, 0, 3, 2])


def make_memory(**options: int) -> MemorySampler:
    settings = {"size": 5, "max_age": 3, "embedding_dim": 2} | options
    return MemorySampler(ExactPopularity(COUNTS), **settings)


def embed(rows: Tensor, step: int) -> Tensor:
    """Make vectors that tell row and step."""
    return torch.stack([rows.float(), torch.full(rows.shape, float(step))], dim=1)


def step_through(memory: MemorySampler, batches: list[list[int]], first: int = 1) -> None:
    for step, batch in enumerate(batches, start=first):
        rows = torch.tensor(batch, dtype=torch.int64)
        memory.update(rows, embed(rows, step))


def held(memory: MemorySampler) -> list[tuple[int, int]]:
    """Give the row and the step of every entry, as its vector tells."""
    sample = sample_of(memory)
    assert sample.stored is not None
    assert sample.stored.columns.tolist() == list(range(len(sample.rows)))
    assert sample.stored.vectors[:, 0].tolist() == sample.rows.tolist()
    return [(int(row), int(step)) for row, step in sample.stored.vectors]


def sample_of(memory: MemorySampler) -> Sample:
    return memory.sample(DrawRequest(torch.tensor([0])), make_generator(0))


def test_holds_the_last_positives_oldest_first() -> None:
    memory = make_memory()
    step_through(memory, [[0, 2]])
    assert held(memory) == [(0, 1), (2, 1)]
    step_through(memory, [[3, 0], [2, 2]], first=2)
    assert held(memory) == [(2, 1), (3, 2), (0, 2), (2, 3), (2, 3)]  # five at most


def test_keeps_no_vector_past_its_age() -> None:
    memory = make_memory(size=100, max_age=2)
    batches = [[0], [2, 3], [], [0], [], []]
    expected = [[(0, 1)], [(0, 1), (2, 2), (3, 2)], [(2, 2), (3, 2)], [(0, 4)], [(0, 4)], []]
    for step, (batch, entries) in enumerate(zip(batches, expected, strict=True), start=1):
        step_through(memory, [batch], first=step)
        assert held(memory) == entries


def test_a_batch_larger_than_the_memory_leaves_its_newest() -> None:
    memory = make_memory(size=2)
    step_through(memory, [[0, 2, 3, 0]])
    assert held(memory) == [(3, 1), (0, 1)]


def test_the_vectors_are_copies_without_a_gradient() -> None:
    memory = make_memory()
    rows, vectors = torch.tensor([0, 2]), torch.ones(2, 2, requires_grad=True)
    memory.update(rows, vectors)
    before = sample_of(memory)
    with torch.no_grad():
        vectors += 1
    rows += 1
    step_through(memory, [[3] * 5])
    assert before.rows.tolist() == [0, 2]
    assert before.stored is not None
    assert not before.stored.vectors.requires_grad
    assert_close(before.stored.vectors, torch.ones(2, 2))


def test_q_counts_the_entries_held_now() -> None:
    memory = make_memory()
    step_through(memory, [[0, 2], [0]])
    sample = sample_of(memory)
    assert sample.expected_size == 3
    step_through(memory, [[0, 0]], first=3)
    expected = (3 * COUNTS / 10).double().log()  # of the three that were held
    assert_close(sample.log_expected_count(torch.arange(4)), expected)


def test_an_empty_memory_has_no_candidates_and_no_q() -> None:
    memory = make_memory()
    sample = sample_of(memory)
    assert (len(sample.rows), sample.expected_size) == (0, 0)
    assert sample.log_expected_count(torch.tensor([[0], [2]])).tolist() == [[-math.inf]] * 2
    with pytest.raises(ArgumentError, match="`positive_rows` must hold candidates that the sampl"):
        draw(memory, DrawRequest(torch.tensor([0])), make_generator(0))


def draw_beside_the_batch(memory: MemorySampler, positives: Tensor) -> Draw:
    mixed = MixedSampler([InBatchSampler(ExactPopularity(COUNTS)), memory])
    return draw(mixed, DrawRequest(positives), make_generator(0))


def test_lengthens_the_batch_in_a_mixture() -> None:
    memory, positives = make_memory(), torch.tensor([0, 3])
    first = draw_beside_the_batch(memory, positives)
    assert first.rows.tolist() == [0, 3]
    step_through(memory, [[2, 2, 0]])
    second = draw_beside_the_batch(memory, positives)
    assert second.rows.tolist() == [0, 3, 2, 2, 0]
    assert second.stored is not None
    assert second.stored.columns.tolist() == [2, 3, 4]
    # Two positives of the batch and three entries: five events of the log.
    assert_close(second.positive_log_q.exp(), torch.tensor([5 * 0.5, 5 * 0.2]))
    assert second.num_draws == 5


def test_holds_every_candidate_as_often_as_its_q_says(
    zipf_counts: Tensor, shuffled_epochs: Callable[[Tensor, int, int], Iterator[Tensor]]
) -> None:
    memory = MemorySampler(ExactPopularity(zipf_counts), size=1000, max_age=6, embedding_dim=1)
    total, expected = torch.zeros(2, len(zipf_counts), dtype=torch.float64)
    everything, num_steps = torch.arange(len(zipf_counts)), 0
    for batch in shuffled_epochs(zipf_counts, 25, 0):
        sample = sample_of(memory)
        total += torch.bincount(sample.rows, minlength=len(zipf_counts))
        expected += sample.log_expected_count(everything).exp()
        num_steps += 1
        memory.update(batch, torch.zeros(len(batch), 1))
    assert num_steps == 2000
    # Every event stays for about four steps, so that the counts vary like four times a Poisson
    # count of a quarter: a standard deviation of at most 2 * sqrt(expected).
    deviation = (total - expected) / (2 * expected.sqrt())
    assert deviation.abs().max() < 4
    assert deviation.square().mean() < 1.2
    assert total.sum() == pytest.approx(expected.sum().item())


def test_goes_on_identically_from_a_saved_state() -> None:
    batches = [[0, 2], [3], [0, 0, 3], [2], [2, 3]]
    whole, before, after = (make_memory() for _ in range(3))
    step_through(whole, batches)
    step_through(before, batches[:3])
    saved = before.state_dict()
    after.load_state_dict(saved)
    assert held(after) == held(before)
    step_through(before, [[0, 0]], first=4)
    step_through(after, batches[3:], first=4)
    assert held(after) == held(whole)
    for name, value in whole.state_dict().items():
        assert torch.equal(after.state_dict()[name], value), name


def filled(**options: int) -> dict[str, Tensor]:
    memory = make_memory(**options)
    rows = torch.tensor([0, 2, 3])
    memory.update(rows, torch.zeros(3, options.get("embedding_dim", 2)))
    memory.update(
        torch.zeros(0, dtype=torch.int64), torch.zeros(0, options.get("embedding_dim", 2))
    )
    return memory.state_dict()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (filled() | {"vectors": torch.zeros(3, 4)}, r"a vector of 2, got 3 rows, .* \[3, 4\]"),
        (filled() | {"ages": torch.ones(2)}, r"got 3 rows, ages \[2\]"),
        (filled(), "must hold at most 2 rows, each with"),
        ({}, r"must hold ages, rows, vectors, got \[\]"),
    ],
)
def test_refuses_the_state_of_another_memory(state: dict[str, Tensor], words: str) -> None:
    size = 2 if words.startswith("must hold at most") else 5
    with pytest.raises(FormatError, match=words):
        make_memory(size=size).load_state_dict(state)


def test_refuses_a_state_with_entries_that_are_too_old() -> None:
    with pytest.raises(FormatError, match="must hold ages up to 1, got 2"):
        make_memory(max_age=1).load_state_dict(filled())


@pytest.mark.parametrize("name", ["size", "max_age", "embedding_dim"])
def test_names_the_setting_that_is_wrong(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(ArgumentError, match=f"`{name}` must be above 0, got 0"):
        make_memory(**options)


def test_names_vectors_of_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"`positive_embeddings` must have shape \[2, 2\]"):
        make_memory().update(torch.tensor([0, 2]), torch.zeros(2, 3))
