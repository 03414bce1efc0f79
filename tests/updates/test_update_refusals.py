"""Updates and compactions that cannot be: one sentence, and nothing is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.foundations import ConfigError, DataError

MakeBundle = Callable[..., Bundle]
Update = Callable[..., Bundle]
MakeItems = Callable[..., pa.Table]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"genre": None},
            "must hold the column 'genre', which the item tower reads, or",
        ),
        ({"price": ["cheap", "1"]}, "The feature column 'price' must hold numbers"),
        ({"price": [[1.0], [2.0]]}, "The feature column 'price' must hold numbers"),
        ({"genre": [["a"], ["b"]]}, "The feature column 'genre' must hold one value a row"),
        ({"title": [["a"], ["b"]]}, "The column 'title' of items must hold"),
        ({"vector": [[0.5] * 8, [0.5] * 7]}, "The 'vector' of item 'new' must hold 8 numbers"),
        ({"vector": [[0.5] * 8, [float("nan")] * 8]}, "'vector' of item 'new' must hold finite"),
        ({"vector": [[0.5] * 8, [1e39] * 8]}, "The 'vector' of item 'new' must hold finite"),
        ({"vector": [[0.5] * 8, [None] * 8]}, "The 'vector' of item 'new' must hold finite"),
        ({"vector": [[0.5] * 8, [3e38] * 8]}, "'vector' of item 'new' must have a length within"),
        ({"vector": ["0.5|0.5", "x"]}, "The 'vector' of item 'i1' must hold 8 numbers|numbers"),
        ({"vector": [1.0, 2.0]}, "The column 'vector' of items must hold lists, got double"),
    ],
)
def test_tables_that_do_not_fit_are_refused_by_name(
    make_bundle: MakeBundle,
    update: Update,
    make_items: MakeItems,
    tmp_path: Path,
    columns: dict[str, Any],
    words: str,
) -> None:
    bundle, items = make_bundle(), make_items(["i1", "new"], seed=0)
    for name, values in columns.items():
        items = items.drop_columns([name]) if name in items.column_names else items
        items = items if values is None else items.append_column(name, pa.array(values))
    with pytest.raises(DataError, match=words):
        update(bundle, items)
    assert not (tmp_path / "version0").exists()


@pytest.mark.parametrize(
    ("put", "gone", "words"),
    [
        (["i1", "new"], ["new"], "'new' stands in items and in remove"),
        ([], ["i1", "nope", "other"], r"remove names 'nope' \(and 1 more\), which the bundle does"),
        ([], [], "There is nothing to change"),
    ],
)
def test_ids_that_contradict_each_other_are_refused(
    make_bundle: MakeBundle,
    update: Update,
    make_items: MakeItems,
    tmp_path: Path,
    put: list[str],
    gone: list[str],
    words: str,
) -> None:
    items = make_items(put, seed=0) if put else None
    with pytest.raises(DataError, match=words):
        update(make_bundle(), items, remove=gone)
    assert not (tmp_path / "version0").exists()


def test_unknown_ids_are_skipped_where_that_is_asked(
    make_bundle: MakeBundle, update: Update
) -> None:
    bundle = update(make_bundle(), remove=["i1", "nope"], on_unknown="skip")
    assert bundle.changes["withdrawn"] == 1
    with pytest.raises(DataError, match="There is nothing to change"):
        update(bundle, remove=["i1", "nope"], on_unknown="skip")  # it is withdrawn already


def test_a_compaction_without_changes_is_refused(
    make_bundle: MakeBundle, update: Update, compact: Update
) -> None:
    bundle = make_bundle()
    with pytest.raises(DataError, match="There is nothing to fold in"):
        compact(bundle)
    with pytest.raises(DataError, match="There is nothing to fold in"):
        compact(update(bundle, remove=["i1"]))


def test_a_folder_that_is_no_bundle_is_not_replaced(
    make_bundle: MakeBundle, update: Update, tmp_path: Path
) -> None:
    bundle = make_bundle()
    for name in ("version0", "version1"):  # where the first and the second update go
        (tmp_path / name).mkdir()
    mine = tmp_path / "version0" / "notes.txt"
    mine.write_text("mine")
    with pytest.raises(ConfigError, match="version0 is no bundle and is not replaced"):
        update(bundle, remove=["i1"])
    assert mine.read_text() == "mine"
    assert update(bundle, remove=["i1"]).path.name == "version1"  # empty: nothing is lost
