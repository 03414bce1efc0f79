"""MovieLens 100K: both sources give one table; made-up films stand in for the real ones."""

import os
import zipfile
from pathlib import Path

import pytest

from recsys.data import LogOptions, fetch_ml100k, interactions_from_table
from recsys.foundations import DataError, MissingFileError

INTERACTIONS = [("1", "2", "3", "881250949"), ("2", "267", "5", "881250950")]
USERS = [("1", "24", "M", "technician", "85711"), ("2", "53", "F", "other", "E2A4H")]
# id, title and year as GroupLens writes them, title and year as the wheel does, genre flags, genres
ITEMS = [
    ("1", "Pâté, Le (Paste, The) (1995) ", "Pâté, Le (Paste, The)", "1995", "1 4", "Action Child"),
    ("2", "Part III: More (1995) (V)", "Part III: More (1995)", "V", "3 18", "Animation Western"),
    ("267", "unknown", "unkonwn", "unkonwn", "0", "unknown"),
]


def make_wheel(folder: Path) -> Path:
    tables: dict[str, list[tuple[str, ...]]] = {
        "inter": [("user_id:token", "item_id:token", "rating:float", "timestamp:float")],
        "item": [
            ("item_id:token", "movie_title:token_seq", "release_year:token", "class:token_seq")
        ],
        "user": [
            ("user_id:token", "age:token", "gender:token", "occupation:token", "zip_code:token")
        ],
    }
    tables["inter"] += INTERACTIONS
    genres = [each[5].replace("Child", "Children's") for each in ITEMS]
    tables["item"] += [(e[0], e[2], e[3], g) for e, g in zip(ITEMS, genres, strict=True)]
    tables["user"] += USERS
    with zipfile.ZipFile(folder / "films.whl", "w") as opened:
        for suffix, rows in tables.items():
            text = "\n".join("\t".join(row) for row in rows)
            opened.writestr(f"recbole/dataset_example/ml-100k/ml-100k.{suffix}", text)
    return folder / "films.whl"


def make_grouplens(folder: Path) -> Path:
    items = []
    for number, title, _, _, flagged, _ in ITEMS:
        flags = ["1" if str(flag) in flagged.split() else "0" for flag in range(19)]
        items.append("|".join([number, title, "01-Jan-1995", "", "http://x", *flags]))
    with zipfile.ZipFile(folder / "ml-100k.zip", "w") as opened:
        text = "".join("\t".join(row) + "\n" for row in INTERACTIONS)
        opened.writestr("ml-100k/u.data", text)
        opened.writestr("ml-100k/u.item", "\n".join(items).encode("latin-1"))
        opened.writestr("ml-100k/u.user", "".join("|".join(row) + "\n" for row in USERS))
    return folder / "ml-100k.zip"


def test_both_sources_give_the_same_tables(tmp_path: Path) -> None:
    wheel = fetch_ml100k(tmp_path, make_wheel(tmp_path))
    original = fetch_ml100k(tmp_path, make_grouplens(tmp_path))
    assert wheel.interactions.equals(original.interactions)
    assert wheel.items.equals(original.items)
    assert wheel.users.equals(original.users)
    assert original.items.to_pylist()[:2] == [
        {
            "item_id": "1",
            "title": "Pâté, Le (Paste, The)",
            "year": 1995,
            "genres": ["Action", "Children's"],
        },
        {
            "item_id": "2",
            "title": "Part III: More",
            "year": 1995,
            "genres": ["Animation", "Western"],
        },
    ]
    assert original.items.to_pylist()[2]["title"] == "unknown"
    assert original.items.to_pylist()[2]["year"] is None
    assert original.users["zip_code"].to_pylist() == ["85711", "E2A4H"]


def test_another_data_set_in_the_archive_is_pointed_out(tmp_path: Path) -> None:
    found = fetch_ml100k(tmp_path, make_grouplens(tmp_path))
    assert len(found.warnings) == 1
    assert (
        "is not the published MovieLens 100K: other interactions and items and users"
        in (found.warnings[0])
    )
    assert found.sources[0]["path"] == str(tmp_path / "ml-100k.zip")


def test_the_log_is_read_like_any_other(tmp_path: Path) -> None:
    found = fetch_ml100k(tmp_path, make_grouplens(tmp_path))
    log = interactions_from_table(found.interactions, LogOptions(min_rating=4))
    assert log.table.to_pylist() == [
        {"user_id": "2", "item_id": "267", "timestamp": 881_250_950_000_000}
    ]


def test_wrong_archives_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"/no\.zip is no file \(dataset\.archive\)"):
        fetch_ml100k(tmp_path, tmp_path / "no.zip")
    (tmp_path / "text.zip").write_text("not a zip")
    with pytest.raises(DataError, match=r"text\.zip is not MovieLens 100K as a zip file"):
        fetch_ml100k(tmp_path, tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as opened:
        opened.writestr("readme", "")
    with pytest.raises(DataError, match=r"other\.zip is not MovieLens 100K: it holds no u\.data"):
        fetch_ml100k(tmp_path, tmp_path / "other.zip")
    with zipfile.ZipFile(tmp_path / "half.zip", "w") as opened:
        opened.writestr("ml-100k/u.data", "1\t2\t3\t4\n")
    with pytest.raises(DataError, match=r"half\.zip is not MovieLens 100K .*u\.item"):
        fetch_ml100k(tmp_path, tmp_path / "half.zip")


def test_without_a_network_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    (tmp_path / "recbole-1.2.1-py3-none-any.whl").write_text("half a download")
    with pytest.raises(MissingFileError, match=r"could not be downloaded .* set dataset\.archive="):
        fetch_ml100k(tmp_path)
    assert os.listdir(tmp_path) == ["recbole-1.2.1-py3-none-any.whl"]  # noqa: PTH208


def test_a_wheel_that_is_not_the_known_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index").mkdir()
    with zipfile.ZipFile(tmp_path / "index/recbole-1.2.1-py3-none-any.whl", "w") as opened:
        opened.writestr("recbole-1.2.1.dist-info/METADATA", "Name: recbole\nVersion: 1.2.1\n")
        opened.writestr("recbole-1.2.1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    with pytest.raises(DataError, match=r"gave another file than recbole-1\.2\.1.* is known to be"):
        fetch_ml100k(tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []  # noqa: PTH208


@pytest.mark.realdata
def test_the_cached_wheel_holds_the_published_data() -> None:
    cache = Path(__file__).parents[2] / "data/raw"
    if not (cache / "recbole-1.2.1-py3-none-any.whl").is_file():
        pytest.skip("the wheel is not cached")
    found = fetch_ml100k(cache)
    assert (len(found.interactions), len(found.items), len(found.users)) == (100_000, 1682, 943)
    assert found.warnings == []
