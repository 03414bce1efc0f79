"""What a mixture hands on of its samplers: columns, stored vectors, updates, state."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.foundations import ArgumentError, make_generator
from recsys.sampling import (
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    LearnedUnigramProposal,
    MixedSampler,
    Sample,
    StoredVectors,
    UniformProposal,
    WithReplacementSampler,
    draw,
)

POSITIVES = torch.tensor([3, 1])


class Given:
    """Draw the rows that it is given, each with Q = `q`; remember what it is taught."""

    def __init__(
        self, rows: list[int] | list[list[int]], q: float, stored: StoredVectors | None = None
    ) -> None:
        self._rows = torch.tensor(rows, dtype=torch.int64)
        self._q, self._stored = torch.tensor(q, dtype=torch.float64), stored
        self.taught: list[tuple[list[int], list[float]]] = []

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        return Sample(
            self._rows,
            lambda rows: self._q.log().expand(rows.shape),
            expected_size=self._rows.shape[-1],
            stored=self._stored,
        )

    def update(self, positive_rows: torch.Tensor, positive_embeddings: torch.Tensor) -> None:
        self.taught.append((positive_rows.tolist(), positive_embeddings.flatten().tolist()))

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"rows": self._rows}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        self._rows = state["rows"]


def test_shared_and_query_samples_stand_side_by_side() -> None:
    in_batch = InBatchSampler(ExactPopularity(np.full(8, 1)))
    mixed = MixedSampler([Given([5, 6], 0.5), in_batch, Given([[0], [7]], 1.0)])
    drawn = draw(mixed, DrawRequest(POSITIVES), make_generator(0))
    assert drawn.rows.tolist() == [[5, 6, 3, 1, 0], [5, 6, 3, 1, 7]]
    # 0.5, 2 positives out of 8 candidates, 1.
    assert_close(drawn.log_q, torch.full((2, 5), 1.75).log())
    assert_close(drawn.positive_log_q, torch.full((2,), 1.75).log())
    assert drawn.own_columns is not None
    assert drawn.own_columns.tolist() == [2, 3]
    assert drawn.num_draws == 5
    assert drawn.stored is None


def test_stored_vectors_keep_their_columns() -> None:
    first = StoredVectors(torch.tensor([0, 1]), torch.tensor([[1.0], [2.0]]))
    second = StoredVectors(torch.tensor([1]), torch.tensor([[3.0]]))
    parts = [Given([4], 1.0), Given([5, 6], 1.0, first), Given([7, 0, 2], 1.0, second)]
    drawn = draw(MixedSampler(parts), DrawRequest(POSITIVES), make_generator(0))
    assert drawn.stored is not None
    assert drawn.stored.columns.tolist() == [1, 2, 4]
    assert drawn.rows[drawn.stored.columns].tolist() == [5, 6, 0]
    assert drawn.stored.vectors.tolist() == [[1.0], [2.0], [3.0]]


def test_an_empty_sample_adds_neither_columns_nor_q() -> None:
    parts = [Given([], 0.0), Given([4], 0.5)]
    drawn = draw(MixedSampler(parts), DrawRequest(POSITIVES), make_generator(0))
    assert drawn.rows.tolist() == [4]
    assert_close(drawn.log_q, torch.tensor([0.5]).log())


def test_teaches_every_sampler_and_keeps_every_state() -> None:
    def make() -> tuple[MixedSampler, Given]:
        learning = WithReplacementSampler(LearnedUnigramProposal(8), num_sampled=2)
        given = Given([5], 1.0)
        uniform = WithReplacementSampler(UniformProposal(8), num_sampled=2)
        return MixedSampler([uniform, learning, given]), given

    (mixed, given), (other, _) = make(), make()
    mixed.update(POSITIVES, torch.tensor([[0.5], [0.25]]))
    assert given.taught == [([3, 1], [0.5, 0.25])]
    state = mixed.state_dict()
    assert sorted(state) == ["1.counts", "2.rows"]
    assert state["1.counts"].tolist() == [1, 2, 1, 2, 1, 1, 1, 1]
    other.load_state_dict(state)
    assert_close(other.state_dict(), state)


def test_a_sampler_that_draws_what_it_says_it_never_draws_is_named() -> None:
    class Wrong(Given):
        def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
            return Sample(self._rows, lambda rows: torch.where(rows == 6, 0.0, 1.0).log(), 2)

    with pytest.raises(ArgumentError, match=r"`sampler` must .* got 0 for row 6 \(1 in this samp"):
        draw(Wrong([5, 6], 1.0), DrawRequest(POSITIVES), make_generator(0))
