"""What is written depends neither on memory nor on the form in which ids are compared."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recsys.data import (
    FeatureOptions,
    FilterSettings,
    LogOptions,
    LogSource,
    PreparedDataset,
    RawEntities,
    SplitSettings,
    TableFormat,
    open_interactions,
    prepare_dataset,
    read_prepared,
)
from recsys.data.memory_budget import MemoryBudget
from recsys.foundations import DataError

RULES = ["temporal", "leave_last_out", "strong_generalization", "cold_items", "random", "given"]
DUPLICATES = ["keep_all", "keep_last", "sum_weights"]
CONTEXT = {
    "hour": FeatureOptions(kind="numeric"),
    "words": FeatureOptions(kind="multi"),
    "place": FeatureOptions(kind="vector"),
}


class TinyBudget(MemoryBudget):
    """So little memory that a log of some hundred rows has many blocks and windows."""

    def events_at_once(self, num_ids: int, bytes_an_event: int) -> int:
        return 41


def make_table(num_rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(3)
    words = [["a", "b", "c"][: rng.integers(0, 4)] for _ in range(num_rows)]
    places = rng.normal(size=2 * num_rows).astype(np.float32)
    return pa.table(
        {
            "user_id": rng.integers(-20, 20, num_rows) ** 7,
            "item_id": pa.array(rng.integers(2**64 - 30, 2**64, num_rows, np.uint64)),
            "timestamp": 1_700_000_000 + rng.integers(0, 50, num_rows),
            "weight": rng.random(num_rows),
            "hour": rng.integers(0, 24, num_rows),
            "words": words,
            "place": pa.FixedSizeListArray.from_arrays(pa.array(places), 2),
        }
    )


def make_items() -> RawEntities:
    ids = [str(2**64 - number) for number in range(1, 40)]
    table = {"id": pa.array(ids, pa.large_string()), "size": list(range(39))}
    return RawEntities(pa.table(table), {}, [])


def open_table(folder: Path, table: pa.Table) -> LogSource:
    pq.write_table(table, folder / "log.parquet", row_group_size=90)
    options = LogOptions(context=tuple(CONTEXT))
    return open_interactions(folder / "log.parquet", options, format=TableFormat())


def open_parts(folder: Path, table: pa.Table, rule: str) -> dict[str, LogSource]:
    """Open a table whole, as "train", or in three parts where the split is given."""
    ends = {"train": (0, 280), "validation": (280, 330), "test": (330, 400)}
    parts = {}
    for name, (start, stop) in ends.items() if rule == "given" else [("train", (0, 400))]:
        (folder / name).mkdir(exist_ok=True)
        parts[name] = open_table(folder / name, table.slice(start, stop - start))
    return parts


def prepare_parts(
    parts: dict[str, LogSource], output: Path, rule: str, duplicates: str
) -> PreparedDataset:
    filters = FilterSettings(
        duplicates=duplicates, min_user_interactions=4, min_item_interactions=6
    )
    given = {name: log for name, log in parts.items() if name != "train"}
    return prepare(parts["train"], output, rule, filters=filters, **given)


def prepare(log: LogSource, output: Path, rule: str, **changes: Any) -> PreparedDataset:
    whole: dict[str, Any] = {
        "items": make_items(),
        "users": None,
        "output": output,
        "filters": FilterSettings(
            duplicates="keep_all", min_user_interactions=5, min_item_interactions=8
        ),
        "split": SplitSettings(rule=rule, validation_share=0.2, test_share=0.2),
        "seed": 0,
        "exclude_seen": False,
        "item_features": {"size": FeatureOptions()},
        "context_features": CONTEXT,
    }
    return read_prepared(prepare_dataset(log, **whole | changes))


@pytest.mark.parametrize("duplicates", DUPLICATES)
@pytest.mark.parametrize("rule", RULES)
def test_memory_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, duplicates: str
) -> None:
    log = open_parts(tmp_path, make_table(), rule)
    at_once = prepare_parts(log, tmp_path / "one", rule, duplicates)
    tiny = TinyBudget(10**9, is_given=False)
    monkeypatch.setattr(MemoryBudget, "of", lambda *_: tiny)
    for name in ("coded_log.ROWS_AT_ONCE", "spilled_log.ROWS_AT_ONCE"):
        monkeypatch.setattr(f"recsys.data.{name}", 17)
    monkeypatch.setattr("recsys.data.user_partitions._ROWS_A_FLUSH", 17)
    monkeypatch.setattr("recsys.data.input_order._NUMBERS_AT_ONCE", 10)
    in_blocks = prepare_parts(log, tmp_path / "many", rule, duplicates)
    assert at_once.manifest["filters"][0]["repeated_rows"] > 0
    assert at_once.manifest["filters"][1]["removed_rows"] > 0
    assert at_once.manifest["files"] == in_blocks.manifest["files"]
    assert at_once.fingerprint == in_blocks.fingerprint


@pytest.mark.parametrize("duplicates", DUPLICATES)
@pytest.mark.parametrize("rule", RULES)
def test_ids_that_are_numbers_give_what_their_texts_give(
    tmp_path: Path, rule: str, duplicates: str
) -> None:
    table = make_table()
    numbers = open_parts(tmp_path, table, rule)
    assert numbers["train"].id_kinds() == {"user_id": "signed", "item_id": "unsigned"}
    first = prepare_parts(numbers, tmp_path / "numbers", rule, duplicates)
    for place, name in enumerate(("user_id", "item_id")):
        table = table.set_column(place, name, pc.cast(table[name], pa.string()))
    texts = open_parts(tmp_path, table, rule)
    second = prepare_parts(texts, tmp_path / "texts", rule, duplicates)
    assert first.manifest["files"] == second.manifest["files"]
    assert first.users.vocabulary.ids.equals(second.users.vocabulary.ids)


def test_a_log_that_is_read_twice_for_its_times_is_as_one_that_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recsys.data.reading_parquet._ROWS_AT_ONCE", 40)
    table = make_table()
    seconds = table["timestamp"].to_numpy()
    odd = np.where(np.arange(len(seconds)) < 40, seconds * 1000, seconds)  # most count seconds
    place = table.column_names.index("timestamp")
    options = LogOptions(context=tuple(CONTEXT), on_bad_rows="drop")
    pq.write_table(table.set_column(place, "timestamp", pa.array(odd)), tmp_path / "odd.parquet")
    twice = open_interactions(tmp_path / "odd.parquet", options, format=TableFormat())
    first = prepare(twice, tmp_path / "first", "random")
    second = prepare(open_table(tmp_path, table.slice(40)), tmp_path / "second", "random")
    assert twice.dropped == {"implausible timestamp": 40}
    assert first.manifest["files"] == second.manifest["files"]


def test_parts_with_numbers_and_texts_share_their_ids(tmp_path: Path) -> None:
    table = make_table()
    (tmp_path / "train").mkdir()
    train = open_table(tmp_path / "train", table.slice(0, 300))
    texts = table.slice(300).set_column(0, "user_id", pc.cast(table["user_id"][300:], pa.string()))
    test = open_table(tmp_path, texts)
    plain = FilterSettings(duplicates="keep_all")
    dataset = prepare(train, tmp_path / "given", "given", test=test, filters=plain)
    known = set(map(str, table["user_id"].to_pylist()))
    assert set(dataset.users.vocabulary.ids.to_pylist()) <= known
    assert len(dataset.test) == 100
    users = dataset.users.vocabulary.ids_of(dataset.test.users).to_pylist()
    assert sorted(users) == sorted(map(str, table["user_id"][300:].to_pylist()))


def test_a_value_beyond_the_type_that_all_files_share_is_refused(tmp_path: Path) -> None:
    # Of int8 and uint64 Arrow makes int64, which does not hold 2**64 - 1.
    for name, hours in (
        ("a", pa.array([-1], pa.int8())),
        ("b", pa.array([2**64 - 1], pa.uint64())),
    ):
        table = pa.table({"user_id": ["u"], "item_id": ["i"], "hour": hours})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    log = open_interactions(tmp_path, LogOptions(context=("hour",)), format=TableFormat())
    changes: dict[str, Any] = {"items": None, "item_features": {}, "context_features": {}}
    with pytest.raises(DataError, match=r"'hour' has types that do not go together: .* uint64"):
        prepare(log, tmp_path / "out" / "dataset", "leave_last_out", **changes)
    assert list((tmp_path / "out").iterdir()) == []
