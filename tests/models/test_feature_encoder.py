"""Each kind of feature as a vector, its missing values, and that missing values are trained."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.data import FeatureSchema, FeatureSpec, FeatureTable
from recsys.foundations import ArgumentError, Ragged
from recsys.models.feature_encoder import FeatureEncoder

CPU = torch.device("cpu")


def make_encoder(
    kind: str,
    size: int,
    *,
    dropout: float = 0.0,
    value_dropout: float = 0.0,
    sparse: bool = True,
) -> FeatureEncoder:
    torch.manual_seed(0)
    return FeatureEncoder(
        [FeatureSpec(name="x", kind=kind, size=size)],
        3,
        dropout=dropout,
        value_dropout=value_dropout,
        init_std=1.0,
        sparse=sparse,
    )


def make_features(kind: str, size: int, column: Any, num_rows: int) -> FeatureTable:
    schema = FeatureSchema((FeatureSpec(name="x", kind=kind, size=size),))
    return FeatureTable(schema, {"x": column}, num_rows)


def make_lists() -> Ragged:
    """[1, 3], [], [2]."""
    return Ragged(np.array([0, 2, 2, 3]), np.array([1, 3, 2], dtype=np.int32))


def encode(encoder: FeatureEncoder, features: FeatureTable) -> Tensor:
    encoded = encoder(features, CPU)
    assert len(encoded) == 1
    assert encoded[0].shape == (len(features), 3)
    return encoded[0]  # type: ignore[no-any-return]


def table_of(encoder: FeatureEncoder) -> Tensor:
    [weight] = [value for name, value in encoder.named_parameters() if name.endswith("weight")]
    return weight


@pytest.mark.parametrize("kind", ["categorical", "bucket"])
def test_a_category_is_its_row(kind: str) -> None:
    encoder = make_encoder(kind, 4)
    features = make_features(kind, 4, np.array([2, 0, 2], dtype=np.int32), 3)
    assert_close(encode(encoder, features), table_of(encoder)[[2, 0, 2]])


def test_a_list_is_the_mean_of_its_rows_and_row_0_when_empty() -> None:
    encoder = make_encoder("multi", 4)
    encoded, table = (
        encode(encoder, make_features("multi", 4, make_lists(), 3)),
        table_of(encoder),
    )
    assert_close(encoded, torch.stack([(table[1] + table[3]) / 2, table[0], table[2]]))


def test_a_text_without_words_has_a_row_that_no_bucket_shares() -> None:
    encoder = make_encoder("text", 4)
    encoded, table = encode(encoder, make_features("text", 4, make_lists(), 3)), table_of(encoder)
    assert len(table) == 5
    assert_close(encoded, torch.stack([(table[1] + table[3]) / 2, table[4], table[2]]))


def test_a_number_scales_one_direction_and_a_missing_one_is_a_learned_vector() -> None:
    encoder = make_encoder("numeric", 1)
    column = np.array([2.0, np.nan, -1.0, 0.0], dtype=np.float32)
    encoded = encode(encoder, make_features("numeric", 1, column, 4))
    assert_close(encoded[0], -2 * encoded[2])
    assert_close(encoded[3], torch.zeros(3))
    assert encoded[1].abs().sum() > 0
    torch.autograd.backward(encoded.sum())
    gradients = {name: value.grad for name, value in encoder.named_parameters()}
    assert_close(gradients["encoders.0.direction"], torch.ones(3))  # 2 - 1 + 0, no NaN
    assert_close(gradients["encoders.0.missing"], torch.ones(3))


def test_a_vector_goes_through_a_linear_layer() -> None:
    encoder = make_encoder("vector", 2)
    column = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0], [0.0, 0.0]], dtype=np.float32)
    first, second, mixed, missing = encode(encoder, make_features("vector", 2, column, 4))
    assert_close(mixed - missing, 2 * (first - missing) + 3 * (second - missing))


def test_training_treats_a_share_of_values_as_missing_in_every_kind() -> None:
    num_rows = 2000
    lists = Ragged(np.arange(num_rows + 1), np.ones(num_rows, dtype=np.int32))
    columns: dict[str, tuple[int, Any]] = {
        "categorical": (4, np.ones(num_rows, dtype=np.int32)),
        "multi": (4, lists),
        "text": (4, lists),
        "numeric": (1, np.ones(num_rows, dtype=np.float32)),
        "vector": (2, np.ones((num_rows, 2), dtype=np.float32)),
    }
    for kind, (size, column) in columns.items():
        encoder = make_encoder(kind, size, dropout=0.25)
        features = make_features(kind, size, column, num_rows)
        [missing] = encode(encoder.eval(), FeatureTable.missing(features.schema, 1))
        assert not torch.isclose(encode(encoder, features), missing).all(dim=1).any(), kind
        dropped = torch.isclose(encode(encoder.train(), features), missing).all(dim=1)
        # 5.2 standard errors of 2000 coins
        assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.05), kind


@pytest.mark.parametrize(("kind", "size"), [("categorical", 4), ("multi", 4), ("text", 4)])
def test_tables_have_sparse_gradients_if_asked_for(kind: str, size: int) -> None:
    column = np.array([1, 0, 3], dtype=np.int32) if kind == "categorical" else make_lists()
    gradients = []
    for sparse in (True, False):
        encoder = make_encoder(kind, size, sparse=sparse)
        torch.autograd.backward(
            encode(encoder, make_features(kind, size, column, 3)).square().sum()
        )
        gradient = table_of(encoder).grad
        assert gradient is not None
        assert gradient.is_sparse == sparse
        gradients.append(gradient.to_dense())
    assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("kind", ["multi", "text"])
def test_values_of_a_list_are_left_out_one_by_one_and_the_mean_stays_in_expectation(
    kind: str,
) -> None:
    encoder = make_encoder(kind, 4, value_dropout=0.25)
    lists = Ragged(np.arange(0, 8001, 2), np.tile(np.array([1, 3], np.int32), 4000))
    encoded = encode(encoder, make_features(kind, 4, lists, 4000)).detach()
    one, three = table_of(encoder).detach()[[1, 3]] / 2 / 0.75
    outcomes = torch.stack([one + three, one, three, torch.zeros(3)])
    found = (encoded[:, None] - outcomes).abs().amax(dim=2) < 1e-5  # [4000, 4]
    assert (found.sum(dim=1) == 1).all()
    # Shares of the four outcomes; the standard deviation of each is below 0.008.
    expected = torch.tensor([9, 3, 3, 1]) / 16
    assert_close(found.float().mean(dim=0), expected, atol=0.03, rtol=0)
    plain = encode(encoder.eval(), make_features(kind, 4, make_lists(), 3))
    assert_close(plain[0], 0.75 * (one + three))


def test_an_empty_list_and_a_missing_one_keep_their_row_under_value_dropout() -> None:
    encoder = make_encoder("multi", 4, value_dropout=0.9)
    encoded = encode(encoder, make_features("multi", 4, Ragged.empty(5), 5))
    assert_close(encoded, table_of(encoder)[[0] * 5])
    gone = make_encoder("multi", 4, dropout=0.999999, value_dropout=0.5)
    assert_close(encode(gone, make_features("multi", 4, make_lists(), 3)), table_of(gone)[[0] * 3])


def test_a_value_left_out_gets_no_gradient() -> None:
    encoder = make_encoder("multi", 1001, value_dropout=0.5)
    lists = Ragged(np.array([0, 1000]), np.arange(1, 1001, dtype=np.int32))
    encode(encoder, make_features("multi", 1001, lists, 1)).sum().backward()
    gradient = table_of(encoder).grad
    assert gradient is not None
    touched = gradient.to_dense().any(dim=1).sum()
    assert 420 < touched < 580  # 500, standard deviation 16


def test_features_are_encoded_in_the_order_of_the_specs() -> None:
    specs = [FeatureSpec(name=name, kind="categorical", size=3) for name in "ba"]
    encoder = FeatureEncoder(specs, 2, dropout=0.0, value_dropout=0.0, init_std=1.0, sparse=True)
    schema = FeatureSchema(tuple(reversed(specs)))
    columns: dict[str, Any] = {"a": np.array([1], np.int32), "b": np.array([2], np.int32)}
    encoded = encoder(FeatureTable(schema, columns, 1), CPU)
    tables = list(encoder.parameters())
    assert_close(encoded, [tables[0][[2]], tables[1][[1]]])


def test_a_read_only_column_is_read() -> None:
    column = np.array([1, 2], dtype=np.int32)
    column.flags.writeable = False
    assert encode(make_encoder("bucket", 3), make_features("bucket", 3, column, 2)).shape == (2, 3)


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="Feature `x` is of the unknown kind 'image'"):
        make_encoder("image", 3)
