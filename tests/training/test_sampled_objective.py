"""One mixture of every stream: whose vectors stand in which column, under which Q; what learns."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.data import Events, FeatureSchema, FeatureTable
from recsys.foundations import FormatError
from recsys.sampling import (
    CountMinPopularity,
    DrawRequest,
    ExactPopularity,
    HardNegativeSampler,
    InBatchSampler,
    LearnedUnigramProposal,
    MemorySampler,
    MixedSampler,
    Popularity,
    Sample,
    Sampler,
    SeededHashing,
    StreamingPopularity,
    UniformProposal,
    WithReplacementSampler,
    merge_repeats,
)
from recsys.training import KnownPositives, SampledObjective, sampled_losses
from recsys.training.sampled_losses import SampledTerms

COUNTS = torch.tensor([4.0, 1, 2, 3, 6])
CHANCES = COUNTS / COUNTS.sum()
SCORES = torch.tensor(
    [[0.5, -1.0, 0.0, 1.5, -0.5], [-1.0, 2.0, -2.0, 0.0, 1.0], [0.0, 0.5, -0.5, 0.2, 0.1]]
)
TOP = torch.tensor([[3, 0], [1, 4], [1, 3]])  # the two best of each row


class Seen:
    """A loss that remembers its terms, and is the standard one."""

    def __init__(self) -> None:
        self.calls: list[SampledTerms] = []

    @property
    def terms(self) -> SampledTerms:
        """Give the terms over all columns, which come first."""
        return self.calls[0]

    def __call__(self, terms: SampledTerms) -> Tensor:
        self.calls.append(terms)
        return sampled_losses.standard_softmax(terms, remove_accidental_hits=True)


def make_memory(unit_items: Any) -> MemorySampler:
    """Make a memory of items 4 and 1, with vectors that no item has now."""
    memory = MemorySampler(ExactPopularity(COUNTS), size=8, max_age=9, embedding_dim=5)
    memory.update(torch.tensor([4, 1]), torch.tensor([[7.0] * 5, [9.0] * 5]))
    return memory


def make_streams(unit_items: Any, names: list[str]) -> list[Sampler]:
    streams: dict[str, Sampler] = {
        "in_batch": InBatchSampler(ExactPopularity(COUNTS)),
        "drawn": WithReplacementSampler(UniformProposal(5), num_sampled=6),
        "memory": make_memory(unit_items),
        "hard": HardNegativeSampler(lambda _: TOP, num_sampled=4, num_top=2),
    }
    return [streams[name] for name in names]


ORDERS = pytest.mark.parametrize(
    "names",
    [
        ["in_batch", "memory"],
        ["memory", "drawn", "in_batch"],
        ["drawn", "in_batch", "hard", "memory"],
        ["memory", "hard", "drawn"],
    ],
)
SIZES = {"in_batch": 3, "drawn": 6, "memory": 2, "hard": 4}


def columns_of(names: list[str]) -> dict[str, range]:
    """Give the columns of each stream: those that the batch shares come first."""
    names = sorted(names, key=lambda name: name == "hard")
    ends = np.cumsum([SIZES[name] for name in names]).tolist()
    return {n: range(end - SIZES[n], end) for n, end in zip(names, ends, strict=True)}


def all_vectors(terms: SampledTerms) -> Tensor:
    """Give the vector of every query's every column: [B, S, E]."""
    embeddings, size = terms.sampled_embeddings, terms.sampled_rows.shape[-1]
    if isinstance(embeddings, Tensor):
        return embeddings.detach().expand(3, size, 5)
    shared, own = embeddings
    own = own if isinstance(own, Tensor) else own.vectors[own.places]
    return torch.cat([shared.expand(3, *shared.shape), own], dim=1).detach()


@ORDERS
def test_stored_vectors_stand_in_the_columns_of_the_memory_and_no_others(
    unit_items: Any, names: list[str]
) -> None:
    seen = Seen()
    sampler = MixedSampler(make_streams(unit_items, names))
    objective = SampledObjective(sampler, unit_items.features, seen)
    positives = [3, 1, 0]
    unit_items.losses(objective, SCORES, unit_items.batch(positives))
    columns, terms = columns_of(names), seen.terms
    by_query = "hard" in names
    size = sum(SIZES[name] for name in names)
    shape = (3, size) if by_query else (size,)
    assert terms.sampled_rows.shape == terms.sampled_log_q.shape == shape
    rows, vectors = terms.sampled_rows.expand(3, size), all_vectors(terms)
    assert vectors.shape == (3, size, 5)
    assert rows[:, columns["memory"]].tolist() == [[4, 1]] * 3
    stored = torch.tensor([[7.0] * 5, [9.0] * 5]).expand(3, 2, 5)
    assert torch.equal(vectors[:, columns["memory"]], stored)
    for name in set(names) - {"memory"}:
        own = rows[:, columns[name]]
        assert torch.equal(vectors[:, columns[name]], torch.eye(5)[own])
    if "in_batch" in names:
        assert rows[:, columns["in_batch"]].tolist() == [positives] * 3
        assert terms.own_columns is not None
        assert terms.own_columns.tolist() == list(columns["in_batch"])
    if by_query:
        for row, drawn in zip(TOP.tolist(), rows[:, columns["hard"]].tolist(), strict=True):
            assert set(drawn) <= set(row)


@ORDERS
def test_log_q_of_every_column_is_that_of_the_sum_of_all_streams(
    unit_items: Any, names: list[str]
) -> None:
    seen = Seen()
    sampler = MixedSampler(make_streams(unit_items, names))
    objective = SampledObjective(sampler, unit_items.features, seen)
    positives = [3, 1, 0]
    unit_items.losses(objective, SCORES, unit_items.batch(positives))
    counts = {
        "in_batch": 3 * CHANCES.expand(3, 5),
        "memory": 2 * CHANCES.expand(3, 5),
        "drawn": torch.full((3, 5), 6 / 5),
        "hard": torch.zeros(3, 5).scatter(1, TOP, 4 / 2),
    }
    total = torch.stack([counts[name] for name in names]).sum(dim=0)  # [B, C]
    rows = seen.terms.sampled_rows.expand(3, seen.terms.sampled_rows.shape[-1])
    expected = total.gather(1, rows).log()
    assert_close(seen.terms.sampled_log_q.expand_as(rows), expected)
    assert_close(seen.terms.positive_log_q, total[range(3), positives].log())
    assert seen.terms.num_draws == pytest.approx(float(total[0].sum()))


@ORDERS
def test_queries_learn_from_all_columns_and_items_from_those_without_stored_vectors(
    unit_items: Any, names: list[str]
) -> None:
    """Else the items would be pulled up in full and pushed down by the live columns' share only."""
    seen, positives = Seen(), [3, 1, 0]
    sampler = MixedSampler(make_streams(unit_items, names))
    objective = SampledObjective(sampler, unit_items.features, seen)
    queries = unit_items.queries(SCORES)
    generator = torch.Generator().manual_seed(0)
    losses = objective.losses(unit_items.model, queries, unit_items.batch(positives), generator)
    of_queries, of_items = torch.autograd.grad(losses.sum(), (queries, unit_items.table))

    over_all = sampled_losses.standard_softmax(seen.terms, remove_accidental_hits=True)
    assert torch.equal(losses, over_all)  # the value is that of the loss over all columns
    rows, weights = softmax_weights(seen.terms, queries.detach())
    pulled = all_vectors(seen.terms) - torch.eye(5)[positives][:, None]
    expected_queries = torch.einsum("bs,bse->be", weights, pulled) / 0.5
    assert_close(of_queries, expected_queries, rtol=0, atol=1e-5)

    # The second loss is that of the same mixture without the memory, under its own Q.
    without = [name for name in names if name != "memory"]
    alone = Seen()
    sampler = MixedSampler(make_streams(unit_items, without))
    other = SampledObjective(sampler, unit_items.features, alone)
    generator.manual_seed(0)
    again = other.losses(unit_items.model, queries, unit_items.batch(positives), generator)
    assert_close(of_items, torch.autograd.grad(again.sum(), unit_items.table)[0])

    rows, weights = softmax_weights(alone.terms, queries.detach())
    expected_items = torch.zeros(6, 5)
    for query in range(3):
        for column in range(rows.shape[1]):
            push = weights[query, column] * queries[query].detach() / 0.5
            expected_items[rows[query, column]] += push
            expected_items[positives[query]] -= push
    assert_close(of_items, expected_items, rtol=0, atol=1e-5)


def test_a_learned_temperature_learns_once_from_all_columns(
    unit_items: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, temperature = Seen(), torch.tensor(0.5, requires_grad=True)
    monkeypatch.setattr(unit_items.model.temperature, "forward", lambda: temperature)
    sampler = MixedSampler(make_streams(unit_items, ["in_batch", "memory"]))
    objective = SampledObjective(sampler, unit_items.features, seen)
    queries, generator = unit_items.queries(SCORES), torch.Generator().manual_seed(0)
    losses = objective.losses(unit_items.model, queries, unit_items.batch([3, 1, 0]), generator)
    [found] = torch.autograd.grad(losses.sum(), temperature)
    assert len(seen.calls) == 2  # over all columns, and over those without stored vectors
    alone = torch.tensor(0.5, requires_grad=True)
    over_all = sampled_losses.standard_softmax(
        replace(seen.terms, temperature=alone), remove_accidental_hits=True
    )
    [expected] = torch.autograd.grad(over_all.sum(), alone)
    assert abs(float(expected)) > 0.1
    assert_close(found, expected)


def softmax_weights(terms: SampledTerms, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Give the rows of all columns [B, S] and the softmax weights of the columns that are left."""
    positives = terms.positive_rows
    rows = terms.sampled_rows.expand(3, terms.sampled_rows.shape[-1])
    logits = torch.einsum("be,bse->bs", queries, all_vectors(terms)) / 0.5
    logits = logits - terms.sampled_log_q.expand_as(logits)
    logits[rows == positives[:, None]] = -math.inf  # hits, the own column among them
    own = SCORES[range(3), positives] - terms.positive_log_q
    return rows, torch.cat([own[:, None], logits], dim=1).softmax(dim=1)[:, 1:]


def test_a_memory_that_is_empty_adds_nothing(unit_items: Any) -> None:
    batch = unit_items.batch([3, 1, 0])
    popularity = ExactPopularity(COUNTS)
    memory = MemorySampler(popularity, size=8, max_age=9, embedding_dim=5)
    with_memory, alone = Seen(), Seen()
    mixed = MixedSampler([InBatchSampler(popularity), memory])
    first = SampledObjective(mixed, unit_items.features, with_memory)
    second = SampledObjective(InBatchSampler(popularity), unit_items.features, alone)
    assert_close(unit_items.losses(first, SCORES, batch), unit_items.losses(second, SCORES, batch))
    unit_items.losses(first, SCORES, batch)  # the memory now holds the first step's positives
    assert with_memory.calls[1].sampled_rows.tolist() == [3, 1, 0] * 2
    assert first.statistics() == {"sample_size": 4.5}


class Watching(StreamingPopularity):
    """A popularity that notes when it is read and when it learns."""

    def __init__(self) -> None:
        super().__init__(SeededHashing(2, 64, 0), step_size=0.1, initial_gap=5.0)
        self.calls: list[Any] = []

    def log_rate(self, rows: Tensor, num_positives: float) -> Tensor:
        self.calls.append("read")
        return super().log_rate(rows, num_positives)

    def update(self, positive_rows: Tensor) -> None:
        self.calls.append(positive_rows.tolist())
        super().update(positive_rows)


def test_popularity_learns_exactly_once_a_step_after_it_was_used(unit_items: Any) -> None:
    popularity = Watching()
    memory = MemorySampler(popularity, size=8, max_age=9, embedding_dim=5)
    sampler = MixedSampler([InBatchSampler(popularity), memory])
    objective = SampledObjective(sampler, unit_items.features, Seen(), popularity=popularity)
    for positives in ([3, 1, 0], [2, 2, 4]):
        unit_items.losses(objective, SCORES, unit_items.batch(positives))
        reads, learned = popularity.calls[:-1], popularity.calls[-1]
        assert set(reads) == {"read"}
        assert learned == positives
        popularity.calls.clear()


class Learner:
    """A sampler that notes what it is told of each step."""

    def __init__(self) -> None:
        self.learned: list[tuple[list[int], Tensor]] = []

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        assert request.query_embeddings is not None
        assert not request.query_embeddings.requires_grad
        zeros = torch.zeros(5, dtype=torch.float64)
        return Sample(torch.tensor([0, 1]), lambda rows: zeros[rows], 2)

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        self.learned.append((positive_rows.tolist(), positive_embeddings))

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take nothing."""


def test_the_sampler_learns_the_positives_and_their_vectors_without_a_gradient(
    unit_items: Any,
) -> None:
    sampler = Learner()
    objective = SampledObjective(sampler, unit_items.features, Seen())
    unit_items.losses(objective, SCORES, unit_items.batch([3, 1, 3]))
    [(rows, vectors)] = sampler.learned
    assert rows == [3, 1, 3]
    assert torch.equal(vectors, torch.eye(5)[[3, 1, 3]])
    assert not vectors.requires_grad


def test_a_draw_may_depend_on_the_newest_item_of_each_history(unit_items: Any) -> None:
    requests: list[DrawRequest] = []

    class Asked(Learner):
        def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
            requests.append(request)
            return super().sample(request, generator)

    histories = np.array([[2, 4, 1], [0, -1, -1], [-1, -1, -1]])  # newest first
    batch = replace(unit_items.batch([3, 1, 3]), histories=histories)
    unit_items.losses(SampledObjective(Asked(), unit_items.features, Seen()), SCORES, batch)
    nothing = replace(batch, histories=histories[:, :0])
    unit_items.losses(SampledObjective(Asked(), unit_items.features, Seen()), SCORES, nothing)
    first, second = requests
    assert first.last_rows is not None
    assert first.last_rows.tolist() == [2, 0, -1]
    assert second.last_rows is None


POPULARITIES: dict[str, Any] = {
    "exact": lambda: ExactPopularity(COUNTS),
    "streaming": lambda: StreamingPopularity(
        SeededHashing(2, 64, 0), step_size=0.1, initial_gap=5.0
    ),
    "count_min": lambda: CountMinPopularity(
        SeededHashing(2, 64, 0), initial_count=1.0, num_candidates=5
    ),
}


def make_stateful(unit_items: Any, kind: str) -> SampledObjective:
    popularity: Popularity = POPULARITIES[kind]()
    memory = MemorySampler(popularity, size=4, max_age=2, embedding_dim=5)
    drawn = WithReplacementSampler(LearnedUnigramProposal(5), num_sampled=6)
    return SampledObjective(
        MixedSampler([InBatchSampler(popularity), memory, drawn]),
        unit_items.features,
        Seen(),
        popularity=popularity,
    )


@pytest.mark.parametrize("kind", POPULARITIES)
def test_the_state_of_sampler_popularity_and_statistics_goes_on_where_it_stopped(
    unit_items: Any, kind: str
) -> None:
    first, second = (make_stateful(unit_items, kind) for _ in range(2))
    for seed, positives in enumerate(([3, 1, 0], [2, 2, 4], [4, 4, 4])):
        unit_items.losses(first, SCORES, unit_items.batch(positives), seed=seed)
    state = first.state_dict()
    second.load_state_dict({name: value.clone() for name, value in state.items()})
    for seed, positives in enumerate(([0, 1, 0], [2, 3, 4])):
        batch = unit_items.batch(positives)
        losses = [unit_items.losses(o, SCORES, batch, seed=seed) for o in (first, second)]
        assert torch.equal(*losses)
    assert first.statistics() == second.statistics()
    states = [first.state_dict(), second.state_dict()]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    has_popularity = any(name.startswith("popularity.") for name in state)
    assert has_popularity == (kind != "exact")


@pytest.mark.parametrize("there", POPULARITIES)
@pytest.mark.parametrize("here", POPULARITIES)
def test_the_state_of_another_popularity_is_refused(unit_items: Any, there: str, here: str) -> None:
    if there == here:
        return
    state = make_stateful(unit_items, there).state_dict()
    with pytest.raises(FormatError, match=r"The checkpoint's (sampler )?state must "):
        make_stateful(unit_items, here).load_state_dict(state)


def test_the_state_of_another_loss_or_sampler_is_refused(unit_items: Any) -> None:
    state = make_stateful(unit_items, "streaming").state_dict()
    features, uniform = unit_items.features, UniformProposal(5)
    plain = SampledObjective(WithReplacementSampler(uniform, num_sampled=2), features, Seen())
    with pytest.raises(FormatError, match="state must be empty for this sampler"):
        plain.load_state_dict(state)
    only_popularity = {k: v for k, v in state.items() if not k.startswith("sampler.")}
    with pytest.raises(FormatError, match=r"must be empty for this sampler, got \['gap'"):
        plain.load_state_dict(only_popularity)
    with pytest.raises(FormatError, match="must hold the state of sampler, popularity, statistics"):
        plain.load_state_dict(plain.state_dict() | {"chain.rows": torch.zeros(1)})
    with pytest.raises(FormatError, match="must hold the statistics sample_size, got none"):
        plain.load_state_dict({})


def test_the_state_of_another_mixture_is_refused(unit_items: Any) -> None:
    state = make_stateful(unit_items, "exact").state_dict()
    names = ["in_batch", "memory"]
    fewer = SampledObjective(
        MixedSampler(make_streams(unit_items, names)), unit_items.features, Seen()
    )
    with pytest.raises(FormatError, match=r"must be of 2 samplers, got \['2\.counts'\]"):
        fewer.load_state_dict(state)
    more = SampledObjective(
        MixedSampler(make_streams(unit_items, [*names, "drawn"])), unit_items.features, Seen()
    )
    with pytest.raises(FormatError, match=r"must be empty for this sampler, got \['counts'\]"):
        more.load_state_dict(state)


def make_known(*, num_items: int = 5) -> KnownPositives:
    """User 0 took items 0, 3 and 4 in training, user 1 took item 1, user 2 took nothing."""
    nothing = FeatureTable.missing(FeatureSchema(), 4)
    users, items = np.array([0, 0, 0, 1]), np.array([3, 0, 4, 1])
    return KnownPositives(Events(users, items, None, None, nothing), num_items)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])  # shared, and of each query's own
def test_an_empty_sample_holds_no_known_positive(shape: tuple[int, ...]) -> None:
    found = make_known().find_others(
        np.array([0, 1]), torch.tensor([0, 1]), torch.zeros(shape, dtype=torch.int64)
    )
    assert found.shape == (2, 0)


def test_known_positives_of_the_user_are_found_besides_the_rows_own() -> None:
    known, users = make_known(), np.array([0, 1, 2, 0])
    positives = torch.tensor([3, 1, 0, 2])
    found = known.find_others(users, positives, torch.arange(5))
    assert found.int().tolist() == [
        [1, 0, 0, 0, 1],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [1, 0, 0, 1, 1],
    ]
    by_query = torch.tensor([[3, 0], [1, 0], [0, 1], [4, 4]])
    assert known.find_others(users, positives, by_query).int().tolist() == [
        [0, 1],
        [0, 0],
        [0, 0],
        [1, 1],
    ]


@pytest.mark.parametrize("by_query", [True, False])
def test_known_positives_of_mapped_rows_are_told_apart_beyond_int32(by_query: bool) -> None:
    # The pairs (0, 5) and (65536, 5) have the same number in 32 bits: 65536 * 65536 is 2**32.
    nothing = FeatureTable.missing(FeatureSchema(), 2)
    columns = np.array([[0, 65536], [5, 7]], np.int32)
    columns.flags.writeable = False
    known = KnownPositives(Events(columns[0], columns[1], None, None, nothing), 65536)
    candidates = torch.tensor([5, 7])
    if by_query:
        candidates = candidates.expand(2, 2)
    found = known.find_others(np.array([0, 65536]), torch.tensor([0, 0]), candidates)
    assert found.int().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("by_query", [True, False])
def test_known_positives_leave_the_row_and_hits_are_the_losss_to_mask(
    unit_items: Any, masked: bool, by_query: bool
) -> None:
    rows = torch.tensor([0, 1, 1, 2, 3, 4])

    class Everything(Learner):
        def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
            zeros = torch.zeros(5, dtype=torch.float64)
            return Sample(rows.expand(3, 6) if by_query else rows, lambda r: zeros[r], 6)

    def loss(terms: SampledTerms) -> Tensor:
        return sampled_losses.standard_softmax(terms, remove_accidental_hits=masked)

    objective = SampledObjective(
        Everything(), unit_items.features, loss, known_positives=make_known()
    )
    users, positives = [0, 1, 2], [3, 1, 0]
    losses = unit_items.losses(objective, SCORES, unit_items.batch(positives, users=users))
    # Of user 0 leave 0 and 4. The positive itself stands once as such, and again where hits stay.
    left = [[1, 1, 2], [0, 2, 3, 4], [1, 1, 2, 3, 4]]
    hits = [1, 2, 1]  # items 3, 1, 0 among the rows
    for row in range(3):
        columns = [positives[row], *left[row]] + [positives[row]] * (0 if masked else hits[row])
        logits = SCORES[row, columns]
        assert_close(losses[row], logits.logsumexp(dim=0) - logits[0])


@pytest.mark.parametrize("names", [["drawn"], ["in_batch"], ["in_batch", "drawn"]])
def test_a_loss_over_merged_repeats_pulls_as_the_one_over_all_draws(
    unit_items: Any, names: list[str]
) -> None:
    batch, pulls = unit_items.batch([3, 1, 3]), []
    for shorten in (None, merge_repeats):
        seen, sampler = Seen(), MixedSampler(make_streams(unit_items, names))
        objective = SampledObjective(sampler, unit_items.features, seen, shorten=shorten)
        pulls.append(unit_items.pull(objective, SCORES, batch))
        assert objective.statistics() == {"sample_size": sum(SIZES[name] for name in names)}
        rows = seen.terms.sampled_rows.tolist()
        assert (len(set(rows)) == len(rows)) == (shorten is not None)
    assert_close(*pulls, rtol=0, atol=1e-6)
