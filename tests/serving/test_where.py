"""`where`: what an expression lets pass, against lists by hand and a slow reading; refusals."""

import datetime
import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.bundle import Bundle
from recsys.data import FeatureOptions
from recsys.foundations import ArgumentError
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]
IDS = ["1", "2", "3", "04", "x y"]
ITEMS: dict[str, list[Any]] = {
    "id": IDS,
    "title": ["Alien", "Brazil", "it's", "", None],
    "price": [9.99, 20.0, None, float("nan"), 5.0],
    "year": pa.array([1979, 1985, None, 2**53 + 1, 2**53], pa.int64()),
    "genres": [["Horror", "Sci-Fi"], ["Comedy"], [], None, ["Sci-Fi", "Comedy"]],
    "sizes": [[1, 2], [2], [], None, [12]],
    "zip": ["00100", "100", "", "7", "1e2"],
    "labels": ["new|gift", "gift wrap", "", None, "new"],
    "in stock": [True, False, None, True, False],
    "added": [datetime.date(2020, 1, day) if day else None for day in (1, 2, 0, 3, 4)],
    "seen": pa.array([None, 0, 1, 3_600_000_000, None], pa.timestamp("us", "Europe/Berlin")),
    "nothing": pa.nulls(5),
    "vector": [[0.1, 0.2]] * 5,
    "fee": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.00"), None, None]),
    "weight": pa.array([-0.0, 0.0, 0.5, None, float("nan")], pa.float32()),
    "half": pa.array(np.array([0, 0.5, 1, np.nan, 2], np.float16), from_pandas=True),
    "at": pa.array([0, 1, None, 3, 1], pa.timestamp("ns")),
}


@pytest.fixture
def lookup(make_bundle: MakeBundle) -> Lookup:
    rows = [("u", one) for one in IDS]
    return Lookup(make_bundle(rows, items=ITEMS, exclude_seen=False))


def passing(lookup: Lookup, where: str) -> list[str]:
    """Give the ids that pass, in the order of the table above."""
    found = lookup.recommend(["u"], k=5, where=where)["item_id"].to_pylist()
    assert len(set(found)) == len(found)
    return [one for one in IDS if one in found]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("price <= 10", ["1", "x y"]),
        ("price = 9.99", ["1"]),
        ("price > 9.99", ["2"]),
        ("price != 20", ["1", "3", "04", "x y"]),  # a missing price is not 20
        ("not price <= 10", ["2", "3", "04"]),
        ("price is null", ["3", "04"]),  # null and NaN
        ("year = 9007199254740993", ["04"]),  # 2**53 + 1, which float64 lacks
        ("year < 1985.5", ["1", "2"]),
        ("year >= 99999999999999999999", []),
        ("genres contains Comedy", ["2", "x y"]),
        ("genres not contains Comedy", ["1", "3", "04"]),
        ("genres contains Com", []),
        ("genres is null", ["3", "04"]),
        ("sizes contains 2", ["1", "2"]),
        ("title contains i", ["1", "2", "3"]),
        ("title = 'it\\'s'", ["3"]),
        ('title = "it\'s"', ["3"]),
        ("title is not null", ["1", "2", "3"]),
        ("title >= B and title < c", ["2"]),
        ("title in [Alien, Brazil, Casablanca]", ["1", "2"]),
        ("title not in [Alien]", ["2", "3", "04", "x y"]),
        ("zip = 100", ["1", "2", "x y"]),  # all are numbers
        ("zip = '100'", ["2"]),
        ("zip < 100", ["04"]),
        ("item_id in [4, 04, 'x y']", ["04", "x y"]),  # ids are digit for digit
        ("labels contains gift", ["1", "2"]),  # a part of the text
        ("`in stock` = TRUE", ["1", "04"]),
        ("added >= 2020-01-02", ["2", "04", "x y"]),
        ("seen = 1970-01-01", ["2"]),  # without a zone it is UTC
        ("seen >= 1970-01-01T01:00:00", ["04"]),
        ("seen <= 1970-01-01T01:00:00+01:00", ["2"]),
        ("nothing is null and nothing != a", IDS),
        ("nothing = a or nothing contains a", []),
        ("price < 10 and year > 1979 or title = Brazil", ["2", "x y"]),
        ("price < 10 and (year > 1979 or title = Brazil)", ["x y"]),
        ("NOT (genres contains Comedy OR price IS NULL)", ["1"]),
        ("not not price <= 10", ["1", "x y"]),
    ],
)
def test_gives_the_items_that_pass(lookup: Lookup, where: str, ids: list[str]) -> None:
    assert passing(lookup, where) == ids


def test_texts_with_a_separator_are_lists(make_bundle: MakeBundle) -> None:
    options = {"labels": FeatureOptions(separator="|", min_count=5)}  # keeps no value of its own
    bundle = make_bundle([("u", one) for one in IDS], items=ITEMS, item_options=options)
    lookup = Lookup(bundle)
    found = lookup.neighbours(["3"], k=5, where="labels contains gift")["item_id"].to_pylist()
    assert found == ["1"]
    with pytest.raises(ArgumentError, match="there are item_id, title, price, year, genres"):
        lookup.neighbours(["3"], k=5, where="vector is null")


def test_a_bundle_of_a_release_that_kept_no_lists_says_what_to_do(make_bundle: MakeBundle) -> None:
    options = {"genres": FeatureOptions(min_count=1), "vector": FeatureOptions()}
    bundle = make_bundle([("u", one) for one in IDS], items=ITEMS, item_options=options)
    display = bundle.items.display
    assert display is not None
    old = replace(bundle, items=replace(bundle.items, display=display.drop_columns(["genres"])))
    with pytest.raises(
        ArgumentError,
        match="does not keep the values of 'genres', only their encoding; an older release wrote "
        "it: prepare the data and train again",
    ):
        passing(Lookup(old), "genres contains Comedy")
    with pytest.raises(ArgumentError, match=r"keep the values of 'vector', only their encoding\."):
        passing(Lookup(bundle), "vector is null")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "position 1: expected a column, not, or (, got the end"),
        ("genre contains x", "position 1: there is no column 'genre'; there are item_id, title"),
        ("price <= 10 and cost > 1", "position 17: there is no column 'cost'"),
        ("price <=", "position 9: expected a value, got the end"),
        ("price < cheap", "position 9: 'price' holds numbers, and 'cheap' is none"),
        ("price < '5'", "position 9: 'price' holds numbers, and '5' is none"),
        ("price contains 5", "position 7: contains asks lists and texts, and 'price' holds numb"),
        ("genres = Comedy", "position 8: 'genres' holds lists, which are asked by contains"),
        ("title < 5", "position 9: 'title' holds texts that are no numbers: '5' must stand in quo"),
        ("`in stock` = yes", "position 14: 'in stock' holds true and false, and 'yes' is neither"),
        ("added > soon", "position 9: 'added' holds date32[day], and 'soon' cannot be read as one"),
        ("price", "position 6: expected one of = != < <= > >= in contains is not, got the end"),
        ("price == 5", "position 8: expected a value, got '='"),
        ("price ~ 5", "position 7: expected one of = != < <= > >= in contains is not, got '~'"),
        ("title = A b", "got 'b'; what has blanks in it must stand in quotes"),
        ("title = 'A", "position 9: the quote ' is not closed"),
        ("title = A!", "position 10: '!' is no sign; there are = != < <= > >= ( ) [ ] and ,"),
        ("title in Alien", "position 10: expected [ and values, as in [DE, FR], got 'Alien'"),
        ("title in []", "position 11: expected a value, got ']'"),
        ("title in [A B]", "position 13: expected , or ], got 'B'"),
        ("title is A", "position 10: expected null or not null, got 'A'"),
        ("title = null", "position 9: expected a value (is null asks for a missing one), got 'nu"),
        ("title = and", "position 9: expected a value (quote it), got 'and'"),
        ("title not = A", "position 11: expected in or contains, got '='"),
        ("(price < 5", "position 11: expected and, or, or ), got the end"),
        ("price < 5)", "position 10: expected and, or, or the end, got ')'"),
        ("not " * 60 + "price < 5", "position 201: more than 50 parts stand inside one another"),
    ],
)
def test_says_what_is_wrong_and_where(lookup: Lookup, where: str, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        lookup.recommend(["u"], k=1, where=where)
    assert message in str(error.value)


def test_goes_together_with_allowed_and_excluded_items_and_the_fallback(lookup: Lookup) -> None:
    asked: dict[str, Any] = {
        "k": 5,
        "where": "price < 100",
        "allowed": ["1", "x y", "3"],
        "exclude": ["1"],
    }
    for user in ("u", "nobody"):
        assert lookup.recommend([user], **asked)["item_id"].to_pylist() == ["x y"]
    assert lookup.neighbours(["3"], **asked)["item_id"].to_pylist() == ["x y"]
    assert lookup.recommend(["u", "nobody"], k=5, where="price < 1").num_rows == 0


def _expressions() -> st.SearchStrategy[tuple[str, set[str]]]:
    """Make expressions, each with the set of ids that a reading of Python's own lets pass."""
    every = set(IDS)
    prices = {"1": 9.99, "2": 20.0, "x y": 5.0}
    genres = dict(zip(IDS, [one or [] for one in ITEMS["genres"]], strict=True))

    def cheaper(limit: int) -> tuple[str, set[str]]:
        return f"price < {limit}", {one for one, price in prices.items() if price < limit}

    def of(genre: str) -> tuple[str, set[str]]:
        return f"genres contains {genre}", {one for one in IDS if genre in genres[one]}

    leaves = st.integers(0, 25).map(cheaper) | st.sampled_from(
        ["Comedy", "Horror", "Sci-Fi", "Film-Noir"]
    ).map(of)

    def both(two: tuple[tuple[str, set[str]], ...]) -> tuple[str, set[str]]:
        return f"({two[0][0]}) and {two[1][0]}", two[0][1] & two[1][1]

    def either(two: tuple[tuple[str, set[str]], ...]) -> tuple[str, set[str]]:
        return f"({two[0][0]} or {two[1][0]})", two[0][1] | two[1][1]

    def opposite(one: tuple[str, set[str]]) -> tuple[str, set[str]]:
        return f"not ({one[0]})", every - one[1]

    def joined(parts: st.SearchStrategy[tuple[str, set[str]]]) -> Any:
        return (
            st.tuples(parts, parts).map(both)
            | st.tuples(parts, parts).map(either)
            | (parts.map(opposite))
        )

    # What stands behind `and` is a leaf or begins with a bracket, so that Python's sets agree.
    simple = st.recursive(leaves, joined, max_leaves=6)
    return st.lists(simple, min_size=1, max_size=3).map(
        lambda parts: (" or ".join(one[0] for one in parts), set.union(*(one[1] for one in parts)))
    )


@pytest.fixture(scope="module")
def kept() -> dict[str, Lookup]:
    return {}


@given(asked=_expressions())
def test_and_or_not_and_brackets_mean_what_they_mean_in_python(
    asked: tuple[str, set[str]], kept: dict[str, Lookup], request: pytest.FixtureRequest
) -> None:
    if not kept:
        kept["lookup"] = request.getfixturevalue("lookup")
    assert set(passing(kept["lookup"], asked[0])) == asked[1]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("price", ["9.99", "5", "5", "7"]),
        (
            "year",
            ["1979", "9007199254740993", "9007199254740992", "1985.0", "99999999999999999999"],
        ),
        ("title", ["Alien", "''", "Brazil"]),
        ("zip", ["100", "'00100'", "7", "'1e2'"]),  # numbers and texts
        ("item_id", ["4", "04", "1"]),
        ("`in stock`", ["true", "FALSE"]),
        ("added", ["2020-01-02", "2020-01-04"]),
        ("seen", ["1970-01-01", "1970-01-01T01:00:00"]),
        ("at", ["1970-01-01", "'1970-01-01 00:00:00.000000001'"]),
        ("fee", ["1.5", "2", "3"]),
        ("weight", ["0", "7"]),
        ("weight", ["-0.0", "0.5"]),
        ("half", ["0", "0.5", "2"]),
        ("nothing", ["a", "b"]),
    ],
)
def test_a_list_of_values_means_one_of_them(lookup: Lookup, column: str, values: list[str]) -> None:
    listed = f"{column} in [{', '.join(values)}]"
    one_by_one = " or ".join(f"{column} = {value}" for value in values)
    assert passing(lookup, listed) == passing(lookup, one_by_one)
    assert passing(lookup, f"not {listed}") == passing(lookup, f"not ({one_by_one})")


def test_the_value_of_a_list_that_cannot_be_compared_is_named(lookup: Lookup) -> None:
    with pytest.raises(ArgumentError, match="position 14: 'price' holds numbers, and 'x' is none"):
        passing(lookup, "price in [5, x, 7]")


def test_few_expressions_are_kept_and_all_are_answered(lookup: Lookup) -> None:
    for number in np.random.default_rng(0).permutation(600):
        assert passing(lookup, f"price < {number}") == [
            one for one, price in (("1", 9.99), ("2", 20.0), ("x y", 5.0)) if price < number
        ]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (5, "`where` must be a text, got int."),
        (["price < 5"], "`where` must be a text, got list."),
        ("title = \ud800", "`where`, position 9: this is no whole character."),
    ],
)
def test_refuses_what_is_no_text(lookup: Lookup, where: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        lookup.recommend(["u"], k=1, where=where)
    assert str(error.value) == message
