"""Which files a path stands for."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recsys.data import find_sources
from recsys.foundations import DataError, MissingFileError


def make_files(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names_of(folder: Path, paths: str | list[str]) -> list[str]:
    return [Path(file.name).relative_to(folder).as_posix() for file in find_sources(paths)]


def test_a_folder_is_its_files_by_name_without_markers(tmp_path: Path) -> None:
    make_files(tmp_path, "b.csv", "a.csv", "_SUCCESS", ".a.csv.crc", "deep/c.csv", "_tmp/d.csv")
    assert names_of(tmp_path, str(tmp_path)) == ["a.csv", "b.csv", "deep/c.csv"]


def test_a_folder_below_a_hidden_one_is_read(tmp_path: Path) -> None:
    make_files(tmp_path, ".cache/log/a.csv")
    assert names_of(tmp_path, str(tmp_path / ".cache/log")) == [".cache/log/a.csv"]


def test_a_list_keeps_its_order(tmp_path: Path) -> None:
    make_files(tmp_path, "b.csv", "a.csv")
    given = [str(tmp_path / "b.csv"), str(tmp_path / "a.csv")]
    assert names_of(tmp_path, given) == ["b.csv", "a.csv"]


def test_home_relative_and_uri_paths_lead_to_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path, "a.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in ("~/a.csv", "a.csv", f"file://{tmp_path}/a.csv"):
        assert names_of(tmp_path, path) == ["a.csv"]


def test_a_source_is_described_by_size_and_hash(tmp_path: Path) -> None:
    make_files(tmp_path, "a.csv")
    assert find_sources(str(tmp_path / "a.csv"))[0].describe() == {
        "path": str(tmp_path / "a.csv"),
        "size_bytes": 5,
        "sha256": hashlib.sha256(b"a.csv").hexdigest(),
    }


def shorten(path: Path) -> None:
    path.write_text("a")


def rewrite(path: Path) -> None:
    path.write_text("b.csv")
    os.utime(path, ns=(1, 1))


def touch_a_little_later(path: Path) -> None:
    path.write_text("b.csv")
    os.utime(path, ns=(7_600_000_000, 7_600_000_000))


@pytest.mark.parametrize(("listed", "asked"), [(7.5, 7), (7, 7.5), (7.5, 7.5)])
def test_a_store_may_tell_the_time_of_a_listed_file_more_closely(
    tmp_path: Path, listed: float, asked: float
) -> None:
    make_files(tmp_path, "a.csv")
    times = [int(seconds * 10**9) for seconds in (listed, asked)]
    os.utime(tmp_path / "a.csv", ns=(times[0], times[0]))
    [source] = find_sources(str(tmp_path))
    os.utime(tmp_path / "a.csv", ns=(times[1], times[1]))
    assert source.describe()["size_bytes"] == 5


@pytest.mark.parametrize("change", [shorten, rewrite, touch_a_little_later, Path.unlink])
def test_a_file_that_changed_since_it_was_found_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    make_files(tmp_path, "a.csv")
    os.utime(tmp_path / "a.csv", ns=(7_500_000_000, 7_500_000_000))
    [source] = find_sources(str(tmp_path / "a.csv"))
    change(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"a\.csv changed while it was read"):
        source.describe()


def test_refuses_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingFileError, match=rf"{tmp_path}/no\.csv does not exist"):
        find_sources("no.csv")
    (tmp_path / "empty").mkdir()
    make_files(tmp_path, "empty/_SUCCESS")
    with pytest.raises(MissingFileError, match=r"The folder .*/empty holds no files"):
        find_sources("empty")
    with pytest.raises(MissingFileError, match="No path was given"):
        find_sources([])


def test_refuses_a_file_named_twice_and_an_unknown_scheme(tmp_path: Path) -> None:
    make_files(tmp_path, "a.csv")
    with pytest.raises(DataError, match=r"a\.csv is listed twice"):
        find_sources([str(tmp_path), str(tmp_path / "a.csv")])
    with pytest.raises(DataError, match=r"^nosuch://bucket/a\.csv cannot be opened"):
        find_sources("nosuch://bucket/a.csv")


def test_refuses_what_is_neither_a_file_nor_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(MissingFileError, match=r"pipe\.csv is neither a file nor a folder"):
        find_sources(str(tmp_path / "pipe.csv"))
