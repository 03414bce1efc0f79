"""Each kind of feature against values worked by hand, and the table's own operations."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from recsys.data import FeatureOptions, FeatureSchema, FeatureSpec, FeatureTable, infer_features
from recsys.foundations import ArgumentError, DataError, FormatError, Ragged


def fit(values: Any, **options: Any) -> FeatureSchema:
    return FeatureSchema.fit(pa.table({"x": values}), {"x": FeatureOptions(**options)})


def encode(schema: FeatureSchema, values: Any) -> Any:
    return schema.encode(pa.table({"x": values})).columns["x"]


def lists_of(column: Any) -> list[list[int]]:
    assert isinstance(column, Ragged)
    return [sorted(column[row].tolist()) for row in range(len(column))]


def array_of(column: Any) -> NDArray[Any]:
    assert isinstance(column, np.ndarray)
    return column


def test_categories_get_rows_by_frequency_and_unknown_ones_share_row_0() -> None:
    schema = fit(["b", "a", "b", None, "c"])  # b twice, then a and c by value
    assert (schema.specs[0].kind, schema.specs[0].size) == ("categorical", 4)
    assert schema.specs[0].values == ("b", "a", "c")
    codes = array_of(encode(schema, ["c", "never seen", None, "b"]))
    assert codes.tolist() == [3, 0, 0, 1]
    assert codes.dtype == np.int32


def test_rare_categories_share_row_0() -> None:
    values = ["a", "a", "a", "b", "b", "c"]
    assert fit(values, min_count=2).specs[0].values == ("a", "b")
    assert fit(values, max_vocabulary=1).specs[0].values == ("a",)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([1, 2, None]), ("1", "2")),
        (pa.array([1.0, 2.0, None]), ("1", "2")),  # integers that a null made floats
        (pa.array([True, False]), ("false", "true")),
        (pa.array(["x", "y"]).dictionary_encode(), ("x", "y")),
        (pa.array([0.5, 1.0]), ("0.5", "1")),
        (pa.array([1e10, 0.5, None]), ("0.5", "10000000000")),
        (pa.array([1e10, -(2.0**62)]), ("-4611686018427387904", "10000000000")),
        (pa.array([1e19, -0.0, float("inf")]), ("0", "1e+19", "inf")),
        (pa.array(np.array([1.0, 0.5], np.float16)), ("0.5", "1")),
        (pa.array([1e10, 1.0], pa.float32()), ("1", "10000000000")),
    ],
)
def test_categories_of_other_types_are_their_text(values: pa.Array, text: tuple[str, ...]) -> None:
    assert fit(values, kind="categorical").specs[0].values == text


def test_several_categories_a_row_from_lists_or_from_text() -> None:
    schema = fit(pa.array([["a", "b", "a"], [], None, ["a", None]]))
    assert (schema.specs[0].kind, schema.specs[0].values) == ("multi", ("a", "b"))
    assert lists_of(encode(schema, pa.array([["b", "a", "b"], None, ["z", "y"]]))) == [
        [1, 2],  # a value counts once a row
        [],
        [0],
    ]
    schema = fit(["Action| Drama", "Drama", "", None], separator="|")
    assert schema.specs[0].values == ("Drama", "Action")
    assert lists_of(encode(schema, ["Drama|Action", "Drama||Drama", None])) == [[1, 2], [1], []]


def test_numbers_are_standardised_on_the_rows_fitted() -> None:
    schema = fit(pa.array([1.0, 3.0, None]))  # mean 2, standard deviation 1
    values = array_of(encode(schema, pa.array([2.0, None, 5.0])))
    assert_array_equal(values, np.array([0.0, np.nan, 3.0], np.float32))
    assert values.dtype == np.float32
    assert array_of(encode(fit(pa.array([7, 7])), pa.array([8]))).tolist() == [1.0]  # not divided
    assert array_of(encode(fit(["1", "3"], kind="numeric"), ["5"])).tolist() == [3.0]


def test_times_are_numbers() -> None:
    times = pa.array([0, 2_000], pa.timestamp("ms"))  # mean 1 s, standard deviation 1 s
    later = pa.array([3_000_000], pa.timestamp("us"))
    assert array_of(encode(fit(times), later)).tolist() == [2.0]


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        (pa.array([1, 3], pa.duration("s")), 2_000_000.0),
        (pa.array([1, 3], pa.time32("s")), 2_000_000.0),
        (pa.array([1_000, 3_000], pa.time64("ns")), 2.0),
    ],
)
def test_durations_and_times_of_the_day_count_microseconds(values: pa.Array, mean: float) -> None:
    spec = fit(values).specs[0]
    assert (spec.kind, spec.mean, spec.scale) == ("numeric", mean, mean / 2)


def test_buckets_are_quantiles_with_row_0_for_missing() -> None:
    schema = fit(pa.array([0, 1, 2, 3, 4]), kind="bucket", num_buckets=4)  # edges 1, 2, 3
    assert schema.specs[0].size == 5
    codes = array_of(encode(schema, pa.array([-9, 0.9, 1.0, 2.5, 3.0, 99, None])))
    assert codes.tolist() == [1, 1, 2, 3, 4, 4, 0]
    assert array_of(encode(fit(pa.array([5, 5, 5]), kind="bucket"), pa.array([4, 5]))).tolist() == [
        1,
        2,
    ]


def test_vectors_keep_their_numbers_and_are_zero_where_missing() -> None:
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float32(), 2)):
        schema = fit(pa.array([[1, 2], None], kind))
        assert (schema.specs[0].kind, schema.specs[0].size) == ("vector", 2)
        vectors = array_of(encode(schema, pa.array([None, [3, 4]], kind)))
        assert_array_equal(vectors, np.array([[0, 0], [3, 4]], np.float32))


def test_the_kind_follows_the_type() -> None:
    table = pa.table(
        {
            "id": ["1", "2", "3"],
            "colour": ["red", "red", None],
            "title": ["One", "Two", "Three"],
            "price": [1.5, 2.0, 3.0],
            "tags": pa.array([["a"], ["b"], []]),
            "embedding": pa.array([[1.0], [2.0], [3.0]]),
            "nothing": pa.nulls(3),
        }
    )
    chosen = infer_features(table, but={"id"})
    kinds = {spec.name: spec.kind for spec in FeatureSchema.fit(table, chosen)}
    assert kinds == {
        "colour": "categorical",
        "price": "numeric",
        "tags": "multi",
        "embedding": "vector",
    }


def make_table() -> FeatureTable:
    table = pa.table(
        {
            "genre": ["a", "b", "a"],
            "tags": pa.array([["x", "y"], [], ["y"]]),
            "price": [1.0, 2.0, 3.0],
            "text": ["one two", None, "two"],
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0], None]),
        }
    )
    options = {name: FeatureOptions() for name in table.column_names}
    options["text"] = FeatureOptions(kind="text", num_buckets=50)
    return FeatureSchema.fit(table, options).encode(table)


def assert_equal_tables(first: FeatureTable, second: FeatureTable) -> None:
    assert len(first) == len(second)
    assert first.schema == second.schema
    for name in first.schema.names:
        one, other = first.columns[name], second.columns[name]
        if isinstance(one, Ragged):
            assert isinstance(other, Ragged)
            assert_array_equal(one.offsets, other.offsets)
            one, other = one.rows, other.rows
        assert isinstance(other, np.ndarray)
        assert one.dtype == other.dtype
        assert_array_equal(one, other)


def test_taking_minus_one_gives_a_row_with_nothing_known() -> None:
    table = make_table()
    taken = table.take(np.array([2, -1, 0, 2]))
    assert_equal_tables(taken.take(np.array([1])), FeatureTable.missing(table.schema, 1))
    assert_equal_tables(taken.take(np.array([2, 3])), table.take(np.array([0, 2])))
    assert_equal_tables(
        FeatureTable.missing(table.schema, 0).take(np.array([-1, -1])),
        FeatureTable.missing(table.schema, 2),
    )
    assert not np.isnan(array_of(table.columns["price"])).any()  # the source is left alone


def test_an_absent_column_is_missing_in_every_row() -> None:
    schema = make_table().schema
    assert_equal_tables(
        schema.encode(pa.table({"unrelated": [1, 2]})), FeatureTable.missing(schema, 2)
    )


def test_a_column_of_nulls_is_missing_in_every_row() -> None:
    schema = make_table().schema
    nulls = pa.table({spec.name: pa.nulls(2) for spec in schema})
    assert_equal_tables(schema.encode(nulls), FeatureTable.missing(schema, 2))


def test_comes_back_from_arrow_and_json_unchanged() -> None:
    table = make_table()
    schema = FeatureSchema.from_json(table.schema.to_json())
    stored = pa.table(table.to_arrow("f_"))
    assert_equal_tables(FeatureTable.from_arrow(schema, stored, "f_"), table)
    chunked = pa.concat_tables([stored.slice(0, 1), stored.slice(1)])
    assert_equal_tables(FeatureTable.from_arrow(schema, chunked, "f_"), table)
    with pytest.raises(FormatError, match="'g_genre' is absent"):
        FeatureTable.from_arrow(schema, stored, "g_")


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (["a", "b"], {"kind": "numeric"}, "'x' must hold numbers"),
        ([1.0, float("inf")], {}, "'x' must hold finite numbers, got inf"),
        (["1", "1e400"], {"kind": "bucket"}, "'x' must hold finite numbers, got '1e400'"),
        ([1, 2], {"kind": "multi"}, "must hold lists, or text with a separator, got int64"),
        ([[1.0], [1.0, 2.0]], {}, "must hold 1 numbers a row, got 2"),
        ([[float("nan")]], {}, "'x' must hold finite numbers within float32, got nan"),
        ([[1.0, 1e300]], {}, r"'x' must hold finite numbers within float32, got 1e\+300"),
        ([["1", "a"]], {"kind": "vector"}, "'x' must hold numbers: .*'a'"),
        ([[[1.0]]], {"kind": "vector"}, "'x' must hold numbers: "),
        (pa.array([None], pa.list_(pa.float32())), {}, "no vector in any training row"),
        ([["a"]], {"kind": "categorical"}, "must hold one value a row"),
        (["a"], {"kind": "vector"}, "must hold lists, got"),
        ([b"a"], {"kind": "categorical"}, "must hold one value a row, got binary"),
        (pa.array([b"a"], pa.binary(1)), {"kind": "text"}, "must hold one value a row, got fixed"),
        (pa.array([b"a"], pa.large_binary()), {"kind": "text"}, "one value a row, got large_bin"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), {"kind": "text"}, "got map"),
        (pa.array([["a"]], pa.list_view(pa.string())), {"kind": "text"}, "got list_view"),
    ],
)
def test_names_the_column_that_does_not_hold_what_its_kind_needs(
    values: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        fit(values, **options)


def test_a_vector_of_another_width_is_refused_when_encoding() -> None:
    with pytest.raises(DataError, match="must hold 2 numbers a row, got 3"):
        encode(fit(pa.array([[1.0, 2.0]])), pa.array([[1.0, 2.0, 3.0]]))


def test_names_an_absent_column() -> None:
    with pytest.raises(DataError, match="'genre' is absent; there are 'x', 'y'"):
        FeatureSchema.fit(pa.table({"x": [1], "y": [1]}), {"genre": FeatureOptions()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "colour"}, "`kind` must be one of auto, categorical"),
        ({"min_count": 0}, "`min_count` must be at least 1, got 0"),
        ({"num_buckets": -1}, "`num_buckets` must be at least 1"),
        ({"separator": ""}, "`separator` must not be empty"),
    ],
)
def test_refuses_impossible_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        FeatureOptions(**options)


def test_reads_numbers_from_the_text_of_a_csv_file() -> None:
    table = pa.table({"price": ["1", " 3 ", "", None]})
    schema = FeatureSchema.fit(table, {"price": FeatureOptions(kind="numeric")})
    # Mean 2 and standard deviation 1 over the two numbers; an empty text is a missing number.
    encoded = schema.encode(table).columns["price"]
    assert isinstance(encoded, np.ndarray)
    assert np.array_equal(encoded, np.array([-1, 1, np.nan, np.nan], np.float32), equal_nan=True)


def test_names_the_column_whose_text_is_no_number() -> None:
    table = pa.table({"price": ["1", "cheap"]})
    with pytest.raises(DataError, match=r"'price' must hold numbers.*cheap"):
        FeatureSchema.fit(table, {"price": FeatureOptions(kind="numeric")})


def test_refuses_a_number_that_leaves_float32_once_standardised() -> None:
    table = pa.table({"price": [1.0, 3.0]})
    schema = FeatureSchema.fit(table, {"price": FeatureOptions(kind="numeric")})
    with pytest.raises(DataError, match=r"'price' must hold numbers near those .* got 1e\+300"):
        schema.encode(pa.table({"price": [2.0, 1e300]}))


@pytest.mark.parametrize(("kind", "largest"), [("numeric", 1e300), ("bucket", 1.5e308)])
def test_refuses_numbers_whose_spread_overflows(kind: str, largest: float) -> None:
    words = re.escape(f"'x' holds numbers too large, such as {largest:g}")
    with pytest.raises(DataError, match=words):
        fit([largest, -largest], kind=kind)


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        ("categorical", np.array([0, 2], np.int32), [False, True]),
        ("bucket", np.array([1, 0], np.int32), [True, False]),
        ("numeric", np.array([0.0, np.nan], np.float32), [True, False]),
        ("vector", np.array([[0, 0], [0, -1]], np.float32), [False, True]),
        ("multi", Ragged(np.array([0, 1, 3]), np.array([0, 0, 2], np.int32)), [False, True]),
        ("text", Ragged(np.array([0, 1, 1]), np.array([0], np.int32)), [True, False]),
    ],
)
def test_a_row_is_known_where_it_holds_a_value(
    kind: str, column: NDArray[Any] | Ragged, expected: list[bool]
) -> None:
    specs = (
        FeatureSpec(name="x", kind=kind, size=3),
        FeatureSpec(name="y", kind="numeric", size=1),
    )
    columns: dict[str, Any] = {"x": column, "y": np.array([1, 1], np.float32)}
    table = FeatureTable(FeatureSchema(specs), columns, 2)
    assert table.known(["x"]).tolist() == expected
    assert table.known(["x", "y"]).tolist() == [True, True]
    assert table.known([]).tolist() == [False, False]
