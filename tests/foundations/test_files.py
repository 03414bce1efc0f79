"""Files that are the old thing or the new thing; hashes that find a changed byte."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recsys.foundations import (
    ConfigError,
    FormatError,
    MissingFileError,
    atomic_file,
    atomic_folder,
    canonical_json,
    check_files,
    list_files,
    read_json,
    sha256_file,
    sha256_text,
    write_json,
)

# echo -n abc | sha256sum
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


class StopError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def test_a_file_appears_with_its_folders_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    with atomic_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert [file.name for file in path.parent.iterdir()] == ["c.txt"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise StopError

    with pytest.raises(StopError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    for name in ("first", "second"):
        with atomic_folder(path) as temporary:
            (temporary / "inside").mkdir()
            (temporary / "inside" / name).write_text(name)
    assert [file.name for file in (path / "inside").iterdir()] == ["second"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_replaced_where_the_system_cannot_exchange_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "somewhere else")
    path = tmp_path / "folder"
    for name in ("first", "second"):
        with atomic_folder(path) as temporary:
            (temporary / name).write_text(name)
    assert [file.name for file in path.iterdir()] == ["second"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()

    def fail() -> None:
        with atomic_folder(path) as temporary:
            (temporary / "new").touch()
            raise StopError

    with pytest.raises(StopError):
        fail()
    assert list(tmp_path.rglob("*")) == [path, path / "old"]


KILLED = """
import sys, time
from pathlib import Path
from recsys.foundations import atomic_folder
with atomic_folder(Path(sys.argv[1])) as folder:
    (folder / "a").write_text("new")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_kill_leaves_the_old_folder_and_the_next_write_is_not_in_its_way(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with atomic_folder(path) as temporary:
        (temporary / "a").write_text("old")
    command = [sys.executable, "-c", KILLED, str(path)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (path / "a").read_text() == "old"
    with atomic_folder(path) as temporary:
        (temporary / "a").write_text("newer")
    assert (path / "a").read_text() == "newer"
    assert list(tmp_path.iterdir()) == [path]  # what the killed process left is gone


def test_a_folder_that_another_process_fills_stays(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with atomic_folder(path) as slow:
        (slow / "a").write_text("slow")
        with atomic_folder(path) as fast:
            (fast / "a").write_text("fast")
        assert (path / "a").read_text() == "fast"
        assert (slow / "a").read_text() == "slow"
    assert (path / "a").read_text() == "slow"
    assert list(tmp_path.iterdir()) == [path]


def test_of_two_first_writers_that_end_at_once_the_last_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, exists = tmp_path / "folder", Path.exists
    with atomic_folder(path) as first:
        (first / "a").write_text("first")
        with atomic_folder(path) as second:
            (second / "a").write_text("second")
        # The first one looked before the second one ended.
        monkeypatch.setattr(Path, "exists", lambda self: self != path and exists(self))
    assert (path / "a").read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_other_folders_are_not_taken_for_abandoned(tmp_path: Path) -> None:
    number = "0" * 32
    names = [f".tmp-{number}-other", f".tmp-{number}-folder-old", ".tmp-1-folder", "folder2"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / f".tmp-{number}-folder").mkdir()
    with atomic_folder(tmp_path / "folder"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "folder"])


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path, is_there: bool) -> None:
    target, link = tmp_path / "disk" / "folder", tmp_path / "link"
    link.symlink_to(target)
    if is_there:
        target.mkdir(parents=True)
        (target / "old").touch()
    with atomic_folder(link) as temporary:
        (temporary / "new").touch()
        assert temporary.parent == target.parent  # a rename is within one file system
    assert link.is_symlink()
    assert list(target.iterdir()) == [target / "new"]
    assert sorted(tmp_path.iterdir()) == [tmp_path / "disk", link]
    assert list((tmp_path / "disk").iterdir()) == [target]


def test_a_folder_does_not_replace_a_file_nor_a_file_a_folder(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch()
    folder.mkdir()
    with (
        pytest.raises(ConfigError, match="folder is a folder; a file is to be"),
        atomic_file(folder),
    ):
        pass
    with pytest.raises(ConfigError, match="file is a file; a folder is to be"), atomic_folder(file):
        pass


def test_a_device_or_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="pipe is no plain file"), atomic_file(pipe):
        pass
    assert pipe.is_fifo()


def test_json_comes_back_as_it_was_written(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None, True], "a": "ünïcode 🎈"}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == value
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert text.index('"a"') < text.index('"b"')
    assert "🎈" in text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_without_a_number_is_refused_and_nothing_is_written(
    tmp_path: Path, number: float
) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": number})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.json is damaged: not a JSON file"):
        read_json(tmp_path / "x.json")


def test_a_missing_json_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere\.json does not exist"):
        read_json(tmp_path / "nowhere.json")
    (tmp_path / "file").touch()
    with pytest.raises(MissingFileError, match="does not exist"):
        read_json(tmp_path / "file" / "x.json")


def test_a_value_has_one_canonical_text() -> None:
    assert canonical_json({"b": 1, "a": [1, "ü"]}) == canonical_json({"a": [1, "ü"], "b": 1})
    assert canonical_json({"b": 1, "a": [1, "ü"]}) == '{"a":[1,"ü"],"b":1}'


def test_hashes_are_sha256(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_text("abc") == sha256_file(tmp_path / "abc") == ABC


def make_listed(folder: Path) -> dict[str, dict[str, object]]:
    (folder / "inside").mkdir()
    (folder / "inside" / "abc").write_bytes(b"abc")
    (folder / "empty").touch()
    return list_files(folder)


def test_a_list_of_files_has_sizes_and_hashes(tmp_path: Path) -> None:
    listed = make_listed(tmp_path)
    assert list(listed) == ["empty", "inside/abc"]
    assert listed["inside/abc"] == {"size_bytes": 3, "sha256": ABC}
    check_files(tmp_path, json.loads(json.dumps(listed)))


def test_a_changed_byte_is_found_by_the_full_check_alone(tmp_path: Path) -> None:
    listed = make_listed(tmp_path)
    (tmp_path / "inside" / "abc").write_bytes(b"abd")
    check_files(tmp_path, listed, full=False)
    with pytest.raises(FormatError, match="inside/abc is damaged: its SHA-256"):
        check_files(tmp_path, listed)


def test_another_size_a_missing_file_and_a_name_that_leaves_are_refused(tmp_path: Path) -> None:
    listed = make_listed(tmp_path)
    (tmp_path / "inside" / "abc").write_bytes(b"abcd")
    with pytest.raises(FormatError, match="inside/abc is damaged: 4 bytes"):
        check_files(tmp_path, listed, full=False)
    (tmp_path / "inside" / "abc").unlink()
    with pytest.raises(FormatError, match="inside/abc is missing"):
        check_files(tmp_path, listed)
    for name in ("../outside", "/etc/hostname"):
        with pytest.raises(FormatError, match="leaves the folder"):
            check_files(tmp_path, {name: {"size_bytes": 0, "sha256": ABC}})


@pytest.mark.parametrize("listed", [None, [], "files"])
def test_a_manifest_without_files_is_refused(tmp_path: Path, listed: object) -> None:
    with pytest.raises(FormatError, match="it lists no files"):
        check_files(tmp_path, listed)


@pytest.mark.parametrize("facts", [None, {}, {"size_bytes": 0}, [1], {"sha256": ABC}])
def test_a_manifest_with_half_its_facts_is_refused(tmp_path: Path, facts: object) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(FormatError, match="damaged"):
        check_files(tmp_path, {"a": facts})
