"""GRU and transformer: what a place may see, in any company, and what it costs."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.data import NO_TIME
from recsys.models import EmbeddingTable, UserTowerSpec
from recsys.models.build_history import build_history
from recsys.models.causal_history import CausalHistory
from recsys.models.history_encoder import QueryPlaces

NUM_ITEMS, DIM = 30, 8
STEADY = UserTowerSpec(
    history="transformer",
    history_length=12,
    num_layers=2,
    history_dropout=0.0,
    layer_dropout=0.0,
    feature_dropout=0.0,
    time_gaps=True,
)
KINDS = {
    "gru": replace(STEADY, history="gru"),
    "relative": STEADY,
    "absolute": replace(STEADY, positions="absolute"),
    "no positions": replace(STEADY, positions="none", time_gaps=False),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))
either_mode = pytest.mark.parametrize("training", [True, False])


def make_encoder(spec: UserTowerSpec, *, training: bool = True) -> CausalHistory:
    torch.manual_seed(0)
    encoder = build_history(spec, DIM, 0.5, trained=torch.ones(NUM_ITEMS) > 0, sparse=True)
    assert isinstance(encoder, CausalHistory)
    with torch.no_grad():  # the distance terms begin at zero, where they would tell nothing
        for parameter in encoder.network.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.2)
    return encoder.train(training)


def make_table(*, sparse: bool = True) -> EmbeddingTable:
    torch.manual_seed(1)
    return EmbeddingTable(NUM_ITEMS, DIM, init_std=1.0, sparse=sparse)


def make_histories(num_rows: int, *, length: int = 12, seed: int = 2) -> tuple[Tensor, Tensor]:
    """Items and times, newest first; about a third of the entries is padding, some inside."""
    generator = torch.Generator().manual_seed(seed)
    histories = torch.randint(0, NUM_ITEMS, (num_rows, length), generator=generator)
    lengths = torch.randint(0, length + 1, (num_rows, 1), generator=generator)
    histories[torch.arange(length) >= lengths] = -1
    histories[torch.rand(histories.shape, generator=generator) < 0.1] = -1
    steps = 4.0 ** (torch.rand(histories.shape, generator=generator) * 20)
    return histories, -(steps.cumsum(dim=1) * 1000).long()


def encode(
    encoder: CausalHistory,
    histories: Tensor,
    times: Tensor | None = None,
    *,
    places: QueryPlaces | None = None,
    table: EmbeddingTable | None = None,
) -> Tensor:
    table = make_table() if table is None else table
    encoded: Tensor = encoder(histories, histories >= 0, table, times=times, places=places)
    return encoded


@every_kind
@either_mode
def test_a_place_is_the_history_cut_there_and_read_alone(kind: str, training: bool) -> None:
    encoder = make_encoder(KINDS[kind], training=training)
    histories, times = make_histories(40)
    rows = torch.arange(40).repeat_interleave(13)
    skipped = torch.arange(13).repeat(40)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(3))
    places = QueryPlaces(rows[order], skipped[order])
    together = encode(encoder, histories, times, places=places)
    for row, skip, state in zip(places.rows[::7], places.skipped[::7], together[::7], strict=True):
        alone = encode(encoder, histories[row : row + 1, skip:], times[row : row + 1, skip:])
        assert_close(state[None], alone, rtol=0, atol=1e-5)


@every_kind
@either_mode
def test_a_history_is_the_same_in_any_company_and_with_any_padding(
    kind: str, training: bool
) -> None:
    encoder = make_encoder(KINDS[kind], training=training)
    histories, times = make_histories(50, length=9)
    together = encode(encoder, histories, times)
    padding = torch.full((50, 3), -1)
    padded = encode(encoder, torch.cat([histories, padding], 1), torch.cat([times, padding], 1))
    assert_close(padded, together, rtol=0, atol=1e-5)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(3))[:20]
    assert_close(
        encode(encoder, histories[order], times[order]), together[order], rtol=0, atol=1e-5
    )


@every_kind
def test_entries_that_are_not_known_are_as_if_absent(kind: str) -> None:
    encoder = make_encoder(KINDS[kind])
    with_gaps = torch.tensor([[3, 9, 4, 7, 1, 5]])
    known = torch.tensor([[False, True, False, True, True, False]])
    times = torch.tensor([[90, 80, 30, 20, 8, 1]]) * 1_000_000
    left = known[0].nonzero().squeeze(1)
    encoded = encoder(with_gaps, known, make_table(), times=times)
    assert_close(encoded, encode(encoder, with_gaps[:, left], times[:, left]), rtol=0, atol=1e-5)


@given(changed=st.integers(0, 11), kind=st.sampled_from(list(KINDS)))
def test_changing_a_newer_item_changes_no_older_place_and_each_place_from_there_on(
    changed: int, kind: str
) -> None:
    encoder, table = make_encoder(KINDS[kind]), make_table()
    histories = torch.arange(12)[None]
    other = histories.clone()
    other[0, changed] = 20
    places = QueryPlaces(torch.zeros(13, dtype=torch.int64), torch.arange(13))
    before = encode(encoder, histories, places=places, table=table)
    after = encode(encoder, other, places=places, table=table)
    differs = ~torch.isclose(before, after, rtol=0, atol=1e-5).all(dim=1)
    # The place that skips s items sees those at s, s + 1, ...
    assert differs.tolist() == [skip <= changed for skip in range(13)]


@every_kind
def test_padding_unknown_and_newer_items_get_no_gradient(kind: str) -> None:
    encoder, table = make_encoder(KINDS[kind]), make_table()
    histories = torch.tensor([[2, 7, 3, -1, -1], [4, 5, -1, -1, -1], [6, -1, -1, -1, -1]])
    known = histories >= 0
    known[0, 2] = False
    places = QueryPlaces(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1]))
    encoded = encoder(histories, known, table, places=places)
    torch.autograd.backward(encoded.square().sum())
    assert table.weight.grad is not None
    gradient = table.weight.grad.to_dense().abs().sum(dim=1)
    assert gradient.nonzero().squeeze(1).tolist() == [4, 5, 7]


@every_kind
def test_order_matters_unless_there_are_no_positions(kind: str) -> None:
    encoder = make_encoder(replace(KINDS[kind], time_gaps=False, num_layers=1))
    forth, back = encode(encoder, torch.tensor([[1, 2, 3, 4], [1, 4, 3, 2]]))
    # With one layer and no positions the older items are a set to the newest one.
    same = torch.allclose(forth, back, rtol=0, atol=1e-5)
    assert same == (kind == "no positions")


@every_kind
@either_mode
def test_a_query_that_knows_nothing_is_a_learned_vector(kind: str, training: bool) -> None:
    encoder = make_encoder(KINDS[kind], training=training)
    histories = torch.tensor([[-1, -1, -1], [4, 3, -1]])
    places = QueryPlaces(torch.tensor([1, 0, 1, 1]), torch.tensor([2, 0, 3, 1]))
    encoded = encode(encoder, histories, places=places)
    assert_close(encoded[:3], encoder.empty.detach().expand(3, DIM))
    assert not torch.allclose(encoded[3], encoded[0])
    nothing = encode(encoder, torch.zeros(2, 0, dtype=torch.int64))
    assert_close(nothing, encoder.empty.detach().expand(2, DIM))
    assert encode(encoder, torch.zeros(0, 3, dtype=torch.int64)).shape == (0, DIM)


@every_kind
def test_search_and_training_give_the_same_where_nothing_is_dropped(kind: str) -> None:
    encoder = make_encoder(KINDS[kind])
    histories, times = make_histories(60)
    trained = encode(encoder, histories, times)
    assert_close(encode(encoder.eval(), histories, times), trained, rtol=0, atol=1e-5)


def test_only_the_newest_items_are_looked_at() -> None:
    encoder = make_encoder(replace(STEADY, history_length=2))
    long, short = torch.tensor([[7, 3, 9, 9]]), torch.tensor([[7, 3]])
    assert_close(encode(encoder, long), encode(encoder, short), rtol=0, atol=1e-6)


def test_times_count_by_the_gap_to_the_older_item_alone() -> None:
    encoder = make_encoder(STEADY)
    histories, minute = torch.tensor([[7, 3, 5]]), 60_000_000
    times = torch.tensor([[900, 500, 400]]) * minute
    plain = encode(encoder, histories, times)
    assert_close(encode(encoder, histories, times + 10**15), plain)
    later = torch.tensor([[1900, 500, 400]]) * minute
    assert not torch.allclose(encode(encoder, histories, later), plain)
    unknown = torch.full_like(times, NO_TIME)
    assert_close(encode(encoder, histories, unknown), encode(encoder, histories, None))


@pytest.mark.parametrize("kind", ["gru", "relative"])
def test_a_hidden_item_is_a_vector_of_zeros_and_touches_no_row(kind: str) -> None:
    encoder = make_encoder(replace(KINDS[kind], history_dropout=0.25))
    table = EmbeddingTable(4000, DIM, init_std=1.0, sparse=True)
    histories = torch.arange(4000)[:, None]
    encoded = encode(encoder, histories, table=table)
    zeros = make_table()
    torch.nn.init.zeros_(zeros.weight)
    encoder.eval()
    hidden = torch.isclose(encoded, encode(encoder, histories[:1], table=zeros), atol=1e-5).all(1)
    shown = torch.isclose(encoded, encode(encoder, histories, table=table), atol=1e-5).all(1)
    assert bool((hidden ^ shown).all())
    assert hidden.float().mean().item() == pytest.approx(0.25, abs=0.03)  # 4.4 standard errors
    torch.autograd.backward(encoded.square().sum())
    assert table.weight.grad is not None
    touched = table.weight.grad.coalesce().indices()[0]
    assert torch.equal(touched, shown.nonzero().squeeze(1))


@pytest.mark.parametrize("kind", ["gru", "relative"])
def test_layer_dropout_is_off_at_search(kind: str) -> None:
    encoder, table = make_encoder(replace(KINDS[kind], layer_dropout=0.5)), make_table()
    histories = torch.arange(6)[None].expand(2, 6)
    first, second = encode(encoder, histories, table=table)
    assert not torch.allclose(first, second)
    first, second = encode(encoder.eval(), histories, table=table)
    assert torch.equal(first, second)


@every_kind
def test_every_parameter_is_trained(kind: str) -> None:
    encoder, table = make_encoder(KINDS[kind]), make_table()
    histories, times = make_histories(40)
    torch.autograd.backward(encode(encoder, histories, times, table=table).square().sum())
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.is_sparse
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_the_transformer_equals_a_slow_one_written_out() -> None:
    encoder = make_encoder(replace(STEADY, num_layers=1, time_gaps=False), training=False)
    parts: dict[str, Any] = dict(encoder.network.named_modules())
    layer, table = parts["layers.0"], make_table()
    items = [4, 9, 4, 17]  # oldest first
    x = table.weight[items]
    mixed = layer.attention_in(layer.attention_norm(x))
    queries, keys, values = mixed.split(DIM, dim=1)
    seen = torch.zeros(4, DIM)
    for head in range(2):
        cols = slice(head * 4, head * 4 + 4)
        for i in range(4):
            logits = torch.stack(
                [
                    queries[i, cols] @ keys[j, cols] / 2 + layer.distance.values[head, i - j]
                    for j in range(i + 1)
                ]
            )
            weights = logits.softmax(dim=0)
            seen[i, cols] = sum(weights[j] * values[j, cols] for j in range(i + 1))
    x = x + layer.attention_out(seen)
    hidden = torch.nn.functional.gelu(layer.forward_in(layer.forward_norm(x)))
    expected = parts["norm"](x + layer.forward_out(hidden))[-1:]
    encoded = encode(encoder, torch.tensor([items[::-1]]), table=table)
    assert_close(encoded, expected, rtol=0, atol=1e-5)
