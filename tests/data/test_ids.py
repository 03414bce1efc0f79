"""Ids stay the text that was written, whatever a file stores them in."""

import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import (
    ColumnNames,
    LogOptions,
    TableFormat,
    entities_from_table,
    interactions_from_table,
    read_entities,
    read_interactions,
)
from recsys.foundations import DataError

CASES = Path(__file__).parents[1] / "cases"


def read_ids(values: Any, kind: pa.DataType | None = None) -> list[str]:
    items = pa.table({"item_id": pa.array(values, kind)})
    found = entities_from_table(items, id_column="item_id", what="item").table["id"]
    return [str(each) for each in found.to_pylist()]


def read_log(path: Path) -> pa.Table:
    return read_interactions(str(path), format=TableFormat(), columns=ColumnNames()).table


def test_integers_become_their_digits() -> None:
    assert read_ids([7, -3, 2**63 - 1], pa.int64()) == ["7", "-3", "9223372036854775807"]
    assert read_ids([2**64 - 1], pa.uint64()) == ["18446744073709551615"]
    assert read_ids([decimal.Decimal(10**30)], pa.decimal128(38, 0)) == ["1" + "0" * 30]


def test_whole_floats_lose_the_point_zero() -> None:
    assert read_ids([30.0, 0.0, 2.0**53 - 1], pa.float64()) == ["30", "0", "9007199254740991"]
    assert read_ids([decimal.Decimal("4.00")], pa.decimal128(10, 2)) == ["4"]


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [([1.0, 1.5], pa.float64(), "1.5"), ([1.0, 2.0**53], pa.float64(), "9007199254740992")],
)
def test_refuses_floats_that_are_no_exact_whole_numbers(
    values: list[float], kind: pa.DataType, shown: str
) -> None:
    with pytest.raises(DataError, match=rf"the table, row 2: the column 'item_id' .* {shown}"):
        read_ids(values, kind)
    with pytest.raises(DataError, match=r"holds 16777216\.0"):  # past it, 32 bits skip integers
        read_ids([2.0**24], pa.float32())


def test_refuses_types_that_cannot_be_ids() -> None:
    with pytest.raises(DataError, match="'item_id' is of type bool, which cannot be an id"):
        read_ids([True], pa.bool_())
    with pytest.raises(DataError, match="bytes that are no text"):
        read_ids([b"\xff"], pa.binary())
    with pytest.raises(DataError, match="not a whole number"):
        read_ids([decimal.Decimal("1.5")], pa.decimal128(10, 2))


def test_dictionaries_and_bytes_are_decoded() -> None:
    assert read_ids(pa.array(["b", "a", "é"]).dictionary_encode()) == ["b", "a", "é"]
    assert read_ids(["é".encode()], pa.binary()) == ["é"]


@given(ids=st.lists(st.text(min_size=1).filter(lambda text: "\0" not in text), unique=True))
def test_text_survives_byte_for_byte(ids: list[str]) -> None:
    assert read_ids(ids, pa.string()) == ids


@given(ids=st.lists(st.text(min_size=1, alphabet='ab,"\n\r é🎧\t07'), min_size=1, unique=True))
def test_quoted_text_in_csv_survives(ids: list[str], tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("csv") / "items.csv"
    quoted = ['"' + each.replace('"', '""') + '"' for each in ids]
    path.write_bytes("\n".join(["item_id,x", *(f"{each},1" for each in quoted)]).encode())
    found = read_entities(str(path), format=TableFormat(), id_column="item_id", what="item")
    assert found.table["id"].to_pylist() == ids


def test_text_that_means_null_elsewhere_is_an_id_in_csv(tmp_path: Path) -> None:
    ids = ["NA", "null", "NULL", "nan", "None", "N/A", "-", "true", "1e5", "007", "1_000", " x "]
    (tmp_path / "log.csv").write_text(
        "user_id,item_id\n" + "".join(f"{each},{each}\n" for each in ids)
    )
    assert read_log(tmp_path / "log.csv")["user_id"].to_pylist() == ids


@pytest.mark.parametrize("name", ["interactions_digits.csv", "interactions.csv"])
def test_b02_ids_that_look_like_numbers_stay_apart(name: str) -> None:
    items = read_log(CASES / "B02" / name)["item_id"]
    counts = {str(each["values"]): each["counts"].as_py() for each in items.value_counts()}
    assert len(counts) == 48
    assert [counts[each] for each in ("007", "07", "7")] == [7, 8, 8]


def test_b02_a_late_text_does_not_split_an_id(tmp_path: Path) -> None:
    # 6000 rows of 200 columns; a reader that guesses types by blocks gives 651 two types.
    header = ["user_id", "item_id", "timestamp", *(f"f{n}" for n in range(197))]
    zeros = ",0" * 197
    rows = [
        f"u{n % 50},{'X1' if n >= 5998 else '651'},{1704067200 + n}{zeros}" for n in range(6000)
    ]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(header), *rows]))
    items = read_log(tmp_path / "wide.csv")["item_id"]
    assert {str(e["values"]): e["counts"].as_py() for e in items.value_counts()} == {
        "651": 5998,
        "X1": 2,
    }


def test_b06_ids_beyond_ascii_are_those_of_the_catalogue() -> None:
    log_ids = set(read_log(CASES / "B06/interactions.csv")["item_id"].to_pylist())
    catalogue = read_entities(
        str(CASES / "B06/catalog.csv"), format=TableFormat(), id_column="item_id", what="item"
    )
    assert log_ids == set(catalogue.table["id"].to_pylist())
    assert len(log_ids) == 48
    assert {"café", "cafe\u0301", "trail ", "tab\there", "Item", "item", "a/b"} <= log_ids


def test_ids_of_a_log_in_memory_follow_the_same_rules() -> None:
    table = pa.table({"user_id": [1.0, 2.0], "item_id": ["a", "b"]})
    assert interactions_from_table(table, LogOptions()).table["user_id"].to_pylist() == ["1", "2"]
