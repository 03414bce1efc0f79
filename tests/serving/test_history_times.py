"""When items were met, from stored and given histories to the model that reads it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import NO_TIME, RawLog
from recsys.foundations import DataError
from recsys.models import UserTowerSpec
from recsys.serving import Lookup
from recsys.serving.given_histories import GivenHistories

MakeBundle = Callable[..., Bundle]

TIMED = UserTowerSpec(history="transformer", time_gaps=True, history_length=8)
# As conftest.py writes the log: event n of all is at 1,700,000,000 + n seconds, 22:13:20 UTC.
ROWS = [(f"u{user}", f"i{(7 * user + 3 * step) % 40}") for user in range(20) for step in range(6)]
U4 = [item for user, item in ROWS if user == "u4"]
U4_SECONDS = [1_700_000_000 + 24 + step for step in range(6)]


def vector_of(lookup: Lookup, user: str, histories: Any = None) -> list[float]:
    table = lookup.embed_users([user], histories=histories)
    vector: list[float] = table["vector"].to_pylist()[0]
    return vector


def history(times: Any = None) -> pa.Table:
    columns = {"user_id": ["u4"] * 6, "item_id": U4}
    return pa.table(columns if times is None else {**columns, "timestamp": times})


@pytest.fixture
def timed(make_bundle: MakeBundle) -> Lookup:
    return Lookup(make_bundle(ROWS, user_tower=TIMED))


def in_milliseconds() -> pa.Table:
    return history([1000 * second for second in U4_SECONDS])


def as_text() -> pa.Table:
    return history([f"2023-11-14T22:13:{44 + step}Z" for step in range(6)])


def as_moments() -> pd.DataFrame:
    frame: pd.DataFrame = history(pd.to_datetime(U4_SECONDS, unit="s")).to_pandas()
    return frame


def shuffled() -> pa.Table:
    return history(U4_SECONDS).take([3, 0, 5, 1, 4, 2])


def as_a_log() -> RawLog:
    return RawLog(history([10**6 * second for second in U4_SECONDS]), "time", {}, 6, [])


@pytest.mark.parametrize("given", [in_milliseconds, as_text, as_moments, shuffled, as_a_log])
def test_the_stored_history_given_again_with_its_times_changes_nothing(
    timed: Lookup, given: Callable[[], Any]
) -> None:
    assert vector_of(timed, "u4", given()) == vector_of(timed, "u4")
    assert timed.recommend(["u4"], k=9, histories=given()).equals(timed.recommend(["u4"], k=9))


def test_times_are_read_in_place_of_the_stored_ones(timed: Lookup) -> None:
    # The same seconds between the items, a year later: gaps are all that is read.
    later = history([second + 31_536_000 for second in U4_SECONDS])
    assert vector_of(timed, "u4", later) == vector_of(timed, "u4")
    slower = history([1_700_000_000 + 86_400 * step for step in range(6)])
    assert vector_of(timed, "u4", slower) != vector_of(timed, "u4")
    both = timed.embed_users(["u5", "u4"], histories=slower)["vector"].to_pylist()
    assert both == [vector_of(timed, "u5"), vector_of(timed, "u4", slower)]


def test_times_are_unknown_where_only_the_order_is_given(timed: Lookup) -> None:
    listed = vector_of(timed, "u4", {"u4": U4})
    assert listed != vector_of(timed, "u4")
    assert vector_of(timed, "u4", history()) == listed
    # Numbers that are no date from 1971 to 2100 in any unit are an order, whatever it counts.
    backwards = history([6, 5, 4, 3, 2, 1]).set_column(1, "item_id", pa.array(U4[::-1]))
    assert vector_of(timed, "u4", backwards) == listed
    log = RawLog(backwards, "order", {}, 6, [])
    assert vector_of(timed, "u4", log) == listed


@pytest.mark.parametrize("encoder", ["transformer", "recency"])
def test_a_model_that_reads_no_times_does_not_care(make_bundle: MakeBundle, encoder: str) -> None:
    lookup = Lookup(make_bundle(ROWS, user_tower=UserTowerSpec(history=encoder)))
    stored = vector_of(lookup, "u4")
    slower = history([1_700_000_000 + 86_400 * step for step in range(6)])
    for given in ({"u4": U4}, history(), slower, as_text()):
        assert vector_of(lookup, "u4", given) == stored


def times_of(given: GivenHistories, user: str) -> NDArray[np.int64]:
    [place] = given.users.rows(pa.array([user], pa.large_string()))
    return np.asarray(given.times[place])


def test_each_time_stays_with_its_item(make_bundle: MakeBundle) -> None:
    bundle = make_bundle(ROWS)
    table = pa.table(
        {
            "user_id": ["a", "b", "a", "a"],
            "item_id": ["i3", "i6", "nothing known", "i0"],
            "timestamp": [1_600_000_030, 1_600_000_020, 1_600_000_010, 1_600_000_000],
        }
    )
    given = GivenHistories(table, bundle)  # an item without a vector takes its time along
    assert times_of(given, "a").tolist() == [1_600_000_000_000_000, 1_600_000_030_000_000]
    assert times_of(given, "b").tolist() == [1_600_000_020_000_000]
    assert bundle.items.vocabulary.ids_of(given.lists[0]).to_pylist() == ["i0", "i3"]
    ordered = dataclasses.replace(bundle, clock="order", history_times=None)
    assert times_of(GivenHistories(table, ordered), "a").tolist() == [NO_TIME] * 2


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([*U4_SECONDS[:5], None], "row 6: column 'timestamp' holds no value"),
        ([*U4_SECONDS[:4], 7, 8], "row 5: column 'timestamp' holds 7, which is no date from 1971"),
        (["2023-11-14T22:13:44Z", *["soon"] * 5], "row 2: .* holds 'soon', which cannot be read"),
        (["2023-11-14T22:13:44Z", *["2023-11-14T22:13:45"] * 5], "row 2: .* without an offset"),
    ],
)
def test_a_time_that_cannot_be_read_is_named(timed: Lookup, times: list[Any], words: str) -> None:
    with pytest.raises(DataError, match=f"The table of histories, {words}"):
        timed.recommend(k=3, histories=history(times))
