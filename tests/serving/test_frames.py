"""Tables of pandas are taken wherever tables of Arrow are, with the same answers."""

from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.foundations import DataError
from recsys.serving import Lookup, as_arrow

MakeBundle = Callable[..., Bundle]
ROWS = [(f"u{user}", f"i{(user * 3 + step) % 12}") for user in range(9) for step in range(5)]


def test_histories_of_pandas(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(ROWS))
    frame = pd.DataFrame({"user_id": ["new", "new"], "item_id": ["i1", "i2"]}, index=[7, 3])
    expected = lookup.recommend(k=3, histories={"new": ["i1", "i2"]})
    assert lookup.recommend(k=3, histories=frame) == expected
    assert lookup.recommend(k=3, histories=pa.Table.from_pandas(frame)) == expected


def test_items_of_pandas(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle(ROWS))
    frame = pd.DataFrame({"item_id": ["i1", "i2"]})
    assert lookup.embed_items(frame) == lookup.embed_items(["i1", "i2"])
    assert lookup.neighbours(frame["item_id"], k=2) == lookup.neighbours(["i1", "i2"], k=2)


def test_whole_numbers_of_pandas_are_ids_digit_for_digit(make_bundle: MakeBundle) -> None:
    lookup = Lookup(make_bundle([(str(user), str(item)) for user, item in enumerate(range(20))]))
    frame = pd.DataFrame({"user_id": [4, 17]})
    assert lookup.recommend(frame["user_id"], k=2) == lookup.recommend(["4", "17"], k=2)


def test_a_column_of_mixed_types_is_refused() -> None:
    with pytest.raises(DataError, match="A column of the table mixes types"):
        as_arrow(pd.DataFrame({"item_id": ["i1", 2]}))
