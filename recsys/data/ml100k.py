"""MovieLens 100K, from one of the two places that carry it.

The data's licence forbids redistribution, so it is fetched, never shipped: from the PyPI wheel
`recbole==1.2.1`, which holds it as an example and is read as a zip file, never imported; or from
GroupLens's own `ml-100k.zip`, which the user downloaded. Both give the same tables:

- GroupLens writes the year behind the title, `Toy Story (1995)`, the wheel in a column of its own.
  Here the title stands alone and the year beside it; `(V)` behind a year (one item) goes.
- Item 267, which GroupLens calls `unknown`, has no year; the wheel spells it `unkonwn`.
- GroupLens writes genres as 19 flags, the wheel as words in the order of the flags.
"""

import io
import logging
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from recsys.foundations import DataError, MissingFileError, sha256_file, sha256_text

log = logging.getLogger(__name__)

_WHEEL = "recbole-1.2.1-py3-none-any.whl"
_WHEEL_SHA256 = "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407"
_IN_WHEEL = "recbole/dataset_example/ml-100k/ml-100k"
_CONTENT_SHA256 = {
    "interactions": "47dcf13f45baa14e4bf88bb6304ec62adca21dc2f1f41b3b182444ea7b3b4bad",
    "items": "4e29152e395146cf9afcd824f9e9019cb231e1a80084b26ad98d66de1e068037",
    "users": "ad695284253d1f86e9c186c7196ec1dc0801ab050476d7743542948969c778c7",
}
_GENRES = ["unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"]
_GENRES += ["Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"]
_GENRES += ["Romance", "Sci-Fi", "Thriller", "War", "Western"]
_FILES = ("u.data", "u.item", "u.user")
_INTERACTIONS = ["user_id", "item_id", "rating", "timestamp"]
_USERS = ["user_id", "age", "gender", "occupation", "zip_code"]


@dataclass(frozen=True)
class Ml100k:
    """The three tables of MovieLens 100K, in the order of the files.

    Attributes:
        interactions: user_id, item_id, rating, timestamp (Unix seconds); all text.
        items: item_id, title (text), year (int64 or null), genres (list of text).
        users: user_id (text), age (int64), gender, occupation, zip_code (text).
        sources: The file they came from: path, size_bytes, sha256.
        warnings: Sentences for the summary.
    """

    interactions: pa.Table
    items: pa.Table
    users: pa.Table
    sources: list[dict[str, Any]]
    warnings: list[str] = field(default_factory=list)


def fetch_ml100k(cache_dir: Path, archive: Path | None = None) -> Ml100k:
    """Read MovieLens 100K, downloading it if it is not there yet.

    Args:
        cache_dir: Folder that keeps the downloaded wheel (2 MB); made if missing.
        archive: GroupLens's `ml-100k.zip`, or the wheel; then nothing is downloaded.

    Raises:
        MissingFileError: `archive` leads nowhere, or the download does not succeed.
        DataError: The file does not hold the data set.
    """
    if archive is not None and not archive.expanduser().is_file():
        raise MissingFileError(f"{archive.expanduser().absolute()} is no file (dataset.archive).")
    path = _cached_wheel(cache_dir) if archive is None else archive.expanduser().absolute()
    sha256 = sha256_file(path)
    try:
        with zipfile.ZipFile(path) as opened:
            tables = _read_any(opened, path)
    except (zipfile.BadZipFile, KeyError, UnicodeError, pa.ArrowInvalid) as error:
        raise DataError(f"{path} is not MovieLens 100K as a zip file: {error}.") from error
    warnings = _compare(path, tables)
    if warnings and archive is None:
        raise DataError(warnings[0])
    for sentence in warnings:
        log.warning(sentence)
    source = {"path": str(path), "size_bytes": path.stat().st_size, "sha256": sha256}
    return Ml100k(**tables, sources=[source], warnings=warnings)


def _compare(path: Path, tables: dict[str, pa.Table]) -> list[str]:
    """Say which tables are not those of the published data set."""
    differing = [name for name, table in tables.items() if _digest(table) != _CONTENT_SHA256[name]]
    if not differing:
        return []
    return [f"{path} is not the published MovieLens 100K: other {' and '.join(differing)}."]


def _digest(table: pa.Table) -> str:
    """Hash a table's names and values, whatever its chunks and the file it came from."""
    texts = [_one_text(column) for column in table.columns]
    lines = pc.binary_join_element_wise(*texts, _text("\t"))
    return sha256_text("\n".join(["\t".join(table.column_names), *lines.to_pylist()]))


def _one_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give each value as one text, lists joined by `|`."""
    text = pc.binary_join(column, "|") if pa.types.is_list(column.type) else column
    return pc.fill_null(pc.cast(text, pa.large_string()), "")


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _cached_wheel(cache_dir: Path) -> Path:
    """Give the path of the wheel, downloaded unless a sound one is there."""
    wheel = cache_dir.expanduser().absolute() / _WHEEL
    if wheel.is_file():
        if sha256_file(wheel) == _WHEEL_SHA256:
            return wheel
        log.warning("%s is damaged; it is downloaded again.", wheel)
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=wheel.parent, prefix=".tmp-") as folder:
        _download(Path(folder))
        fresh = Path(folder) / _WHEEL
        if not fresh.is_file() or sha256_file(fresh) != _WHEEL_SHA256:
            raise DataError(f"The package index gave another file than {_WHEEL} is known to be.")
        fresh.replace(wheel)
    return wheel


def _download(folder: Path) -> None:
    """Let pip download the wheel into a folder."""
    log.info("Downloading MovieLens 100K (2 MB, from the PyPI wheel recbole 1.2.1).")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    command += ["--only-binary", ":all:", "--retries", "2", "--timeout", "15"]
    command += ["--disable-pip-version-check", "--dest", str(folder), "recbole==1.2.1"]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=300, check=False
        )
        failed, lines = done.returncode != 0, done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        failed, lines = True, ["no answer within 300 seconds"]
    if failed:
        reason = (lines or ["no reason given"])[-1].removeprefix("ERROR: ").rstrip(".")
        raise MissingFileError(
            f"MovieLens 100K could not be downloaded from the package index ({reason}); "
            "download ml-100k.zip from https://grouplens.org/datasets/movielens/100k/ and set "
            "dataset.archive= to its path."
        )


def _read_any(opened: zipfile.ZipFile, path: Path) -> dict[str, pa.Table]:
    names = opened.namelist()
    if f"{_IN_WHEEL}.inter" in names:
        return _read_wheel(opened)
    folder = next((name[: -len("u.data")] for name in names if name.endswith("u.data")), None)
    if folder is None:
        raise DataError(f"{path} is not MovieLens 100K: it holds no u.data.")
    return _read_grouplens(opened, folder)


def _read_wheel(opened: zipfile.ZipFile) -> dict[str, pa.Table]:
    """Read tab-separated tables whose header gives each column's type: `user_id:token`."""
    interactions, items, users = (
        _read_text(opened.read(f"{_IN_WHEEL}.{suffix}").decode("utf-8"), "\t", None)
        for suffix in ("inter", "item", "user")
    )
    titles, years = items["movie_title"], items["release_year"]
    whole = pc.binary_join_element_wise(titles, _text(" ("), years, _text(")"), _text(""))
    return {
        "interactions": interactions.select(_INTERACTIONS),
        "items": _items(items["item_id"], whole, pc.split_pattern(items["class"], " ")),
        "users": _users(users),
    }


def _read_grouplens(opened: zipfile.ZipFile, folder: str) -> dict[str, pa.Table]:
    """Read the original files: no header, latin-1, items and users separated by `|`."""
    texts = {name: opened.read(f"{folder}{name}").decode("latin-1") for name in _FILES}
    interactions = _read_text(texts["u.data"], "\t", _INTERACTIONS)
    fields = ["item_id", "title", "released", "video_released", "url", *_GENRES]
    items = _read_text(texts["u.item"], "|", fields)
    flags = np.stack([pc.equal(items[name], "1").to_numpy() for name in _GENRES], axis=1)
    offsets = np.concatenate([[0], np.cumsum(flags.sum(axis=1))]).astype(np.int32)
    words = pa.array(_GENRES).take(pa.array(np.nonzero(flags)[1]))
    genres = pa.ListArray.from_arrays(pa.array(offsets), words)
    return {
        "interactions": interactions,
        "items": _items(items["item_id"], items["title"], pa.chunked_array([genres])),
        "users": _users(_read_text(texts["u.user"], "|", _USERS)),
    }


def _read_text(text: str, separator: str, names: list[str] | None) -> pa.Table:
    """Read a table in which nothing is quoted, as text."""
    header = text.split("\n", 1)[0].split(separator) if names is None else names
    plain = [name.split(":")[0].strip() for name in header]
    return csv.read_csv(
        io.BytesIO(text.encode("utf-8")),
        read_options=csv.ReadOptions(column_names=plain, skip_rows=int(names is None)),
        parse_options=csv.ParseOptions(delimiter=separator, quote_char=False),
        convert_options=csv.ConvertOptions(
            column_types={name: pa.large_string() for name in plain}, strings_can_be_null=False
        ),
    )


def _items(ids: pa.ChunkedArray, titles: pa.ChunkedArray, genres: pa.ChunkedArray) -> pa.Table:
    """Part the year from titles such as `Toy Story (1995)`."""
    whole = pc.utf8_trim_whitespace(titles)
    parted = pc.extract_regex(whole, r"^(?P<title>.*\S)\s*\((?P<year>\d{4})\)(?:\s*\(V\))*$")
    named = pc.coalesce(pc.struct_field(parted, "title"), whole)
    return pa.table(
        {
            "item_id": ids,
            "title": pc.if_else(pc.starts_with(whole, "unkonwn"), _text("unknown"), named),
            "year": pc.cast(pc.struct_field(parted, "year"), pa.int64()),
            "genres": pc.cast(genres, pa.list_(pa.string())),
        }
    )


def _users(users: pa.Table) -> pa.Table:
    ages = pc.cast(users["age"], pa.int64())
    return users.select(_USERS).set_column(1, "age", ages)
