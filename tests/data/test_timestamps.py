"""Times in any notation give one moment, or are refused."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import (
    ColumnNames,
    LogOptions,
    RawLog,
    TableFormat,
    interactions_from_table,
    read_interactions,
    read_moments,
)
from recsys.foundations import ArgumentError, DataError

CASES = Path(__file__).parents[1] / "cases/B09"
SECOND = 1_000_000  # µs


def read_times(values: Any, kind: pa.DataType | None = None, **options: Any) -> RawLog:
    times = values if isinstance(values, pa.Array) else pa.array(values, kind)
    table = pa.table({"user_id": ["u"] * len(times), "item_id": ["i"] * len(times), "t": times})
    return interactions_from_table(
        table, LogOptions(columns=ColumnNames(timestamp="t"), **options), name="log"
    )


def micros(log: RawLog) -> list[int]:
    assert log.clock == "time"
    found: list[int] = log.table["timestamp"].to_pylist()
    return found


def read_case(name: str, **options: Any) -> RawLog:
    return read_interactions(
        str(CASES / name), format=TableFormat(), columns=ColumnNames(), **options
    )


def ten_minute_steps() -> set[int]:
    start = 1_704_067_200  # 2024-01-01T00:00:00Z
    return {(start + 600 * step) * SECOND for step in range(360)}


NOTATIONS = ["seconds.csv", "millis.csv", "micros.csv", "float_seconds.csv", "iso_z.csv"]
NOTATIONS += ["iso_mixed_offsets.csv", "ts_ms.parquet", "ts_us.parquet", "ts_ns.parquet"]


@pytest.mark.parametrize("name", NOTATIONS)
def test_b09_every_notation_gives_the_same_log(name: str) -> None:
    log = read_case(name)
    assert set(micros(log)) == ten_minute_steps()
    assert log.table.equals(read_case("seconds.csv").table)
    assert log.dropped == {}


def test_b09_the_last_fifth_begins_where_it_should() -> None:
    table = read_case("millis.csv").table
    late = table.filter(pc.field("timestamp") >= 1_704_240_000 * SECOND)
    expected = read_interactions(
        str(CASES / "expected_test_last20pct.csv"), format=TableFormat(), columns=ColumnNames()
    ).table
    pairs = sorted(zip(*late.select(["user_id", "item_id"]).to_pydict().values(), strict=True))
    assert pairs == sorted(zip(*expected.to_pydict().values(), strict=True))
    assert len(pairs) == 72


def test_b09_naive_and_aware_times_need_a_zone() -> None:
    with pytest.raises(DataError, match=r"row 1: .* as 180 times do, while 180 have one; set data"):
        read_case("iso_naive_and_aware.csv")
    with pytest.raises(
        DataError, match=r"set dataset\.timezone \(of a lookup: timezone\) for those"
    ):
        read_case("iso_naive_and_aware.csv", on_bad_rows="drop")
    log = read_case("iso_naive_and_aware.csv", timezone="UTC")
    assert set(micros(log)) == ten_minute_steps()


def test_b09_mixed_units_are_counted() -> None:
    with pytest.raises(DataError, match=r"mixed_units\.csv, row 1: .*'1704245400000000'.* looks"):
        read_case("mixed_units.csv")
    log = read_case("mixed_units.csv", on_bad_rows="drop")
    assert log.dropped == {"implausible timestamp": 8}
    assert set(micros(log)) < ten_minute_steps()


def test_b09_bad_values_are_named_and_counted() -> None:
    with pytest.raises(
        DataError,
        match=r"bad_values\.csv, row 4: column 'timestamp' holds no value .*bad rows: 1 null "
        r"timestamp, 1 unreadable timestamp, 2 implausible timestamp, of 360; on_bad_rows=drop",
    ):
        read_case("bad_values.csv")
    log = read_case("bad_values.csv", on_bad_rows="drop")
    assert (len(log.table), log.num_rows_read) == (356, 360)
    assert sum(log.dropped.values()) == 4


@pytest.mark.parametrize("policy", ["error", "drop"])
@pytest.mark.parametrize(
    ("name", "unit", "found"),
    [
        ("seconds.csv", "ms", "read as timestamp_unit=ms, it looks like s"),
        ("micros.csv", "ns", "read as timestamp_unit=ns, it looks like us"),
        ("millis.csv", "s", "read as timestamp_unit=s, it looks like ms"),
        ("iso_z.csv", "s", "does not fit timestamp_unit=s"),
        ("seconds.csv", "iso", "does not fit timestamp_unit=iso"),
        ("iso_z.csv", "order", "does not fit timestamp_unit=order"),
    ],
)
def test_a_wrong_unit_is_caught_even_where_bad_rows_are_dropped(
    name: str, unit: str, found: str, policy: str
) -> None:
    with pytest.raises(DataError, match=found):
        read_case(name, timestamp_unit=unit, on_bad_rows=policy)


def test_declared_units_are_read() -> None:
    for unit, per_second in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items():
        log = read_times([1_700_000_000 * per_second], timestamp_unit=unit)
        assert micros(log) == [1_700_000_000 * SECOND]


def test_fractions_reach_the_microsecond_and_no_further() -> None:
    assert micros(read_times([1_700_000_000.25])) == [1_700_000_000_250_000]
    assert micros(read_times(["1700000000.25", "1.7e9"])) == [
        1_700_000_000_250_000,
        1_700_000_000_000_000,
    ]
    assert micros(read_times([1_700_000_000_123_456_789])) == [1_700_000_000_123_456]
    assert micros(read_times(["2024-01-03T00:00:00.1234567Z"])) == [1_704_240_000_123_456]


def test_integers_past_any_date_do_not_wrap_around() -> None:
    # 2**62 s in µs would overflow 64 bits; it must not come back as a plausible date.
    log = read_times([1_700_000_000, 2**62, -(2**62)], on_bad_rows="drop")
    assert log.dropped == {"implausible timestamp": 2}
    log = read_times(["1700000000", "9" * 19, "9" * 40], on_bad_rows="drop")
    assert log.dropped == {"implausible timestamp": 2}


def test_the_least_integer_is_no_order() -> None:
    # -(2**63) has no absolute value in 64 bits; it is as far from 0 as its neighbour.
    values = [-(2**63), -(2**63) + 1, -(2**62), -(2**62) + 1, 2**62 - 1, 2**62]
    log = read_times(values, timestamp_unit="order", on_bad_rows="drop")
    assert log.dropped == {"unreadable timestamp": 4}
    assert log.table["timestamp"].to_pylist() == [-(2**62) + 1, 2**62 - 1]


@pytest.mark.parametrize(
    ("number", "zone", "shown"),
    [
        (-(2**62), None, r"'-4611686018427387904 of type timestamp\[us\]'"),
        (2**62, "UTC", r"'4611686018427387904 of type timestamp\[us, tz=UTC\]'"),
        (1, "Mars/Olympus", r"'1 of type timestamp\[us, tz=Mars/Olympus\]'"),
        (1, "UTC", r"'1970-01-01 00:00:00.000001\+00:00'"),
    ],
)
def test_a_time_that_python_cannot_hold_is_refused_by_its_number(
    number: int, zone: str | None, shown: str
) -> None:
    message = rf"log, row 1: column 't' holds {shown}, which is not a date from 1971 to 2100"
    with pytest.raises(DataError, match=message):
        read_times([number], pa.timestamp("us", zone))


def test_dates_outside_1971_to_2100_are_implausible() -> None:
    texts = ["1970-12-31T23:59:59Z", "1971-01-01T00:00:00Z", "2099-12-31T23:59:59Z"]
    log = read_times([*texts, "2100-01-01T00:00:00Z"], on_bad_rows="drop")
    assert log.dropped == {"implausible timestamp": 2}
    with pytest.raises(DataError, match="is not a date from 1971 to 2100"):
        read_times(texts)


def test_a_column_that_counts_positions_is_taken_for_no_clock() -> None:
    with pytest.raises(DataError, match=r"holds 0, which no unit .* is it timestamp_unit=order"):
        read_times([0, 1, 2])
    log = read_times([2, 0, 1], timestamp_unit="order")
    assert (log.clock, log.table["timestamp"].to_pylist()) == ("order", [2, 0, 1])


def test_an_order_is_made_of_integers() -> None:
    log = read_times(["3", "x", "1.5", None], timestamp_unit="order", on_bad_rows="drop")
    assert log.table["timestamp"].to_pylist() == [3]
    assert log.dropped == {"null timestamp": 1, "unreadable timestamp": 2}
    with pytest.raises(DataError, match="which is a time; timestamp_unit=order needs integers"):
        read_times([1], pa.timestamp("s"), timestamp_unit="order")


def test_impossible_dates_are_unreadable() -> None:
    bad = ["2023-02-29", "2024-13-01", "2024-00-10", "2024-01-32", "2024-01-01T24:00:00"]
    bad += ["2024-01-01T10:60", "20240101", "yesterday", "2024-01-01T10:00:00+25:00", "2024/01/01"]
    log = read_times(["2024-02-29", *bad], on_bad_rows="drop")
    # 20240101 is a number, though no time.
    assert log.dropped == {"unreadable timestamp": 9, "implausible timestamp": 1}
    assert micros(log) == [1_709_164_800 * SECOND]


@given(
    moment=st.datetimes(datetime.datetime(1971, 1, 2), datetime.datetime(2099, 12, 30)),
    minutes=st.integers(-14 * 60, 14 * 60),
)
def test_iso_times_agree_with_the_standard_library(moment: datetime.datetime, minutes: int) -> None:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    aware = moment.replace(tzinfo=zone)
    expected = (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // (
        datetime.timedelta(microseconds=1)
    )
    text = aware.isoformat()
    mixed = [text, text.replace("T", " "), f"  {text} ", "2024-01-01T00:00:00Z"]
    assert micros(read_times(mixed))[:3] == [expected] * 3  # read field by field
    assert micros(read_times([text])) == [expected]
    naive = micros(read_times([moment.isoformat()]))
    assert naive == [expected + minutes * 60 * SECOND]


def test_a_zone_gives_its_offset_of_the_day() -> None:
    # Berlin: +01:00 in winter, +02:00 in summer; 02:30 on 2024-10-27 happened twice.
    log = read_times(
        ["2024-01-01T12:00", "2024-07-01T12:00", "2024-10-27T02:30"], timezone="Europe/Berlin"
    )
    hour = 3600 * SECOND
    noon = [1_704_110_400 * SECOND, 1_719_835_200 * SECOND]
    assert micros(log)[:2] == [noon[0] - hour, noon[1] - 2 * hour]
    assert micros(log)[2] == 1_729_989_000 * SECOND  # 00:30 UTC, the earlier one
    assert log.warnings == []
    with pytest.raises(ArgumentError, match=r"`timezone` must be a zone .* got 'Berlin'"):
        read_times(["2024-01-01"], timezone="Berlin")


def test_times_without_a_zone_are_utc_and_said_so() -> None:
    log = read_times(["2024-01-03"])
    assert micros(log) == [1_704_240_000 * SECOND]
    assert log.warnings == ["Times in 't' have no offset and were read as UTC; "
                            "dataset.timezone changes that."]  # fmt: skip


def test_arrow_dates_and_zoned_times_are_read() -> None:
    day = datetime.date(2024, 1, 3)
    assert micros(read_times([day], pa.date32())) == [1_704_240_000 * SECOND]
    assert micros(read_times([day], pa.date64())) == [1_704_240_000 * SECOND]
    zoned = pa.array([1_704_240_000], pa.timestamp("s", "America/New_York"))
    assert micros(read_times(zoned)) == [1_704_240_000 * SECOND]
    words = pa.array(["1704240000"]).dictionary_encode()
    assert micros(read_times(words)) == [1_704_240_000 * SECOND]
    with pytest.raises(DataError, match="unreadable timestamp"):
        read_times([True], pa.bool_())


def test_no_time_column_means_no_clock() -> None:
    log = interactions_from_table(pa.table({"user_id": ["u"], "item_id": ["i"]}), LogOptions())
    assert (log.clock, log.table.column_names) == ("none", ["user_id", "item_id"])


@pytest.mark.parametrize(
    "values",
    [
        [1_704_240_000, 1_704_240_001],
        [1_704_240_000_500, 1_704_240_001_000],
        [1_704_240_000.25, 1_704_240_001.0],
        ["2024-01-03T00:00:00+02:00", "2024-01-03T00:00:01Z"],
        ["1704240000", "1704240001"],
        [datetime.date(2024, 1, 3), datetime.date(2024, 1, 4)],
        [],
    ],
)
def test_moments_of_a_table_are_those_of_a_log(values: list[Any]) -> None:
    moments = read_moments(pa.table({"t": values}), "t", name="table")
    assert moments is not None
    assert moments.tolist() == (micros(read_times(values)) if values else [])


def test_numbers_that_are_no_dates_are_no_moments() -> None:
    assert read_moments(pa.table({"t": [3, 1, 2]}), "t", name="table") is None
    with pytest.raises(DataError, match="table, row 2: column 't' holds 2, which is no date"):
        read_moments(pa.table({"t": [1_704_240_000, 2]}), "t", name="table")
    with pytest.raises(DataError, match="table, row 1: column 't' holds no value"):
        read_moments(pa.table({"t": [None, 1_704_240_000]}), "t", name="table")
