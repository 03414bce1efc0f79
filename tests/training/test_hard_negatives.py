"""Hard negatives: when the item vectors are looked at anew, and what a resumed run searches."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, FormatError, make_generator
from recsys.index import ExactIndex
from recsys.sampling import DrawRequest
from recsys.training import RefreshedHardNegatives

QUERY = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
NUM_ITEMS = 6


class Model:
    """Item vectors that change at every step: at step t item t + 1 leads for the first query."""

    def __init__(self) -> None:
        self.step = self.looks = 0

    def __call__(self) -> NDArray[np.float32]:
        self.looks += 1
        first = np.roll(np.arange(NUM_ITEMS, 0, -1, dtype=np.float32), self.step + 1)
        return np.stack([first, np.arange(NUM_ITEMS, dtype=np.float32)], axis=1)


def make(model: Model, *, refresh: int = 3, num_top: int = 1, draws: int = 4) -> Any:
    return RefreshedHardNegatives(
        model, ExactIndex, num_sampled=draws, num_top=num_top, refresh_steps=refresh
    )


def request(queries: Tensor = QUERY) -> DrawRequest:
    return DrawRequest(torch.zeros(len(queries), dtype=torch.int64), None, queries)


def run(sampler: RefreshedHardNegatives, model: Model, steps: int) -> list[list[list[int]]]:
    """Give the sets of rows that each step draws for each query."""
    drawn = []
    for _ in range(steps):
        sample = sampler.sample(request(), make_generator(model.step, "draws"))
        drawn.append([sorted(set(rows)) for rows in sample.rows.tolist()])
        sampler.update(torch.zeros(2, dtype=torch.int64), torch.zeros(2, 2))
        model.step += 1
    return drawn


def test_item_vectors_are_looked_at_before_the_first_draw_and_then_every_n_steps() -> None:
    model = Model()
    drawn = run(make(model, refresh=3), model, 7)
    leaders = [rows[0] for rows in drawn]
    assert leaders == [[1], [1], [1], [4], [4], [4], [1]]  # of steps 0, 3 and 6: t + 1, modulo 6
    assert [rows[1] for rows in drawn] == [[5]] * 7
    assert model.looks == 3


def test_a_refresh_at_every_step_is_never_stale() -> None:
    model = Model()
    drawn = run(make(model, refresh=1), model, 5)
    assert [rows[0] for rows in drawn] == [[1], [2], [3], [4], [5]]


@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_resumed_run_searches_what_the_run_before_it_searched(stop: int) -> None:
    whole_model, model = Model(), Model()
    whole = run(make(whole_model, num_top=2), whole_model, 9)
    first = make(model, num_top=2)
    before = run(first, model, stop)
    state = {name: value.clone() for name, value in first.state_dict().items()}
    assert state["vectors"].shape == (NUM_ITEMS, 2)
    second = make(model, num_top=2)
    second.load_state_dict(state)
    assert before + run(second, model, 9 - stop) == whole
    assert model.looks == whole_model.looks


def test_before_the_first_step_there_is_no_state() -> None:
    model = Model()
    sampler = make(model)
    assert sampler.state_dict() == {}
    used = make(model)
    run(used, model, 2)
    used.load_state_dict({})  # a checkpoint from before the first step
    assert used.state_dict() == {}
    assert run(used, model, 1)[0][0] == [3]
    with pytest.raises(FormatError, match=r"holds no hard negatives, got \['counts'\]"):
        sampler.load_state_dict({"counts": torch.zeros(3)})


def test_log_q_is_n_over_m_in_the_list_and_zero_elsewhere() -> None:
    model = Model()
    sample = make(model, num_top=2, draws=3).sample(request(), make_generator(0, "draws"))
    log_q = sample.log_expected_count(torch.arange(NUM_ITEMS))
    assert log_q.exp().tolist() == [
        pytest.approx([0, 1.5, 1.5, 0, 0, 0]),
        pytest.approx([0, 0, 0, 0, 1.5, 1.5]),
    ]
    assert sample.expected_size == 3


def test_names_what_is_wrong() -> None:
    model = Model()
    with pytest.raises(ArgumentError, match="`refresh_steps` must be above 0, got 0"):
        make(model, refresh=0)
    with pytest.raises(
        ArgumentError, match="`num_top` must be at most the number of candidates, 6"
    ):
        make(model, num_top=7).sample(request(), make_generator(0, "draws"))
    blind = DrawRequest(torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ArgumentError, match="`query_embeddings` must be given for hard negatives"):
        make(model).sample(blind, make_generator(0, "draws"))
