"""From settings to a prepared data set: every source, and which columns must be there."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from recsys.config import PrepareConfig, compose_config
from recsys.config.build_dataset import build_prepared, find_or_prepare, prepared_folder
from recsys.data import PreparedDataset, read_prepared
from recsys.foundations import ConfigError, DataError


def make_config(folder: Path, **settings: Any) -> PrepareConfig:
    given = {"dataset.prepared_root": str(folder / "prepared"), **settings}
    return compose_config("prepare", PrepareConfig, given)


def write_log(folder: Path, *, header: str = "user_id,item_id,timestamp,device") -> Path:
    """Write 8 users with 4 events each, one second apart, on one of two devices."""
    rows = [
        f"u{user},i{(user + item) % 5},{1_700_000_000 + 9 * user + item},{device}"
        for user in range(8)
        for item, device in enumerate(("pc", "tv", "pc", "tv"))
    ]
    (folder / "log.csv").write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    return folder / "log.csv"


def table(folder: Path, **settings: Any) -> PreparedDataset:
    log = str(write_log(folder))
    given = {"dataset": "table", "dataset.interactions": log, **settings}
    return read_prepared(build_prepared(make_config(folder, **given), folder / "out"))


def test_columns_of_the_log_are_context(tmp_path: Path) -> None:
    dataset = table(tmp_path, **{"+features.context": {"device": "categorical"}})
    assert dataset.context_schema.names == ("device",)
    assert len(set(dataset.train.context.columns["device"].tolist())) == 2  # type: ignore[union-attr]


def test_tables_of_items_and_users_give_features(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(
        "sku,color\n" + "".join(f"i{n},{'red' if n % 2 else 'blue'}\n" for n in range(6))
    )
    (tmp_path / "users.csv").write_text(
        "user_id,age\n" + "".join(f"u{n},{20 + n}\n" for n in range(8))
    )
    dataset = table(
        tmp_path,
        **{
            "dataset.items": str(tmp_path / "items.csv"),
            "dataset.users": str(tmp_path / "users.csv"),
            "dataset.columns.item_table_id": "sku",
            "+features.users": {"age": {"kind": "bucket", "num_buckets": 3}},
        },
    )
    assert dataset.items.features.schema.names == ("color",)
    assert [spec.kind for spec in dataset.users.features.schema] == ["bucket"]
    assert dataset.num_items == 6  # one was never chosen, and has features to go by


def test_a_feature_of_a_table_that_is_not_given_is_refused_before_data_are_read(
    tmp_path: Path,
) -> None:
    given = {"dataset": "table", "dataset.interactions": "none.csv"}
    for side in ("items", "users"):
        with pytest.raises(
            ConfigError, match=rf"features\.{side}\.age needs a table of {side}: da"
        ):
            make_config(tmp_path, **given, **{f"+features.{side}": {"age": "numeric"}})


@pytest.mark.parametrize(
    ("settings", "column"),
    [
        ({"dataset.columns.user": "who"}, "who"),
        ({"dataset.columns.timestamp": "when"}, "when"),
        ({"dataset.columns.rating": "stars"}, "stars"),
        ({"dataset.columns.weight": "amount"}, "amount"),
        ({"dataset.min_rating": 4}, "rating"),
    ],
)
def test_a_column_that_was_asked_for_must_be_there(
    tmp_path: Path, settings: dict[str, Any], column: str
) -> None:
    with pytest.raises(DataError, match=rf"log\.csv.*{column}"):
        table(tmp_path, **settings)


def test_a_time_whose_unit_is_declared_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id\nu,i\n")
    given = {"dataset": "table", "dataset.interactions": str(tmp_path / "log.csv")}
    config = make_config(tmp_path, **given, **{"dataset.timestamp_unit": "s"})
    with pytest.raises(DataError, match="timestamp"):
        build_prepared(config, tmp_path / "out")


def test_a_file_without_a_header_takes_the_names_that_are_given(tmp_path: Path) -> None:
    log = write_log(tmp_path, header="")
    names = {"dataset.file.header": False, "dataset.file.names": ["user_id", "item_id", "t", "d"]}
    given = {"dataset": "table", "dataset.interactions": str(log), "dataset.columns.timestamp": "t"}
    config = make_config(tmp_path, **given, **names)
    dataset = read_prepared(build_prepared(config, tmp_path / "out"))
    assert (len(dataset.users), dataset.clock) == (8, "time")


@pytest.mark.parametrize(
    "settings", [{"dataset.file.separator": ",,"}, {"dataset.file.encoding": "utf-9"}]
)
def test_a_form_of_file_that_cannot_be_is_refused(tmp_path: Path, settings: Any) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.file"):
        table(tmp_path, **settings)


def make_grouplens(path: Path) -> Path:
    flags = "|".join(["0", "1", *["0"] * 17])
    with zipfile.ZipFile(path, "w") as archive:
        lines = [
            f"{u}\t{i}\t{1 + (u + i) % 5}\t{881250000 + i}" for u in (1, 2) for i in range(1, 6)
        ]
        archive.writestr("ml-100k/u.data", "\n".join(lines) + "\n")
        items = [f"{i}|Film {i} (1995)|01-Jan-1995||http://x|{flags}" for i in range(1, 6)]
        archive.writestr("ml-100k/u.item", "\n".join(items) + "\n")
        archive.writestr("ml-100k/u.user", "1|24|M|artist|85711\n2|53|F|other|94043\n")
    return path


def test_movielens_comes_from_an_archive_that_the_user_has(tmp_path: Path) -> None:
    archive = make_grouplens(tmp_path / "ml-100k.zip")
    config = make_config(tmp_path, **{"dataset.archive": str(archive)})
    dataset = read_prepared(build_prepared(config, tmp_path / "out"))
    assert dataset.manifest["split"]["rule"] == "leave_last_out"
    assert len(dataset.train) == 6
    assert dataset.items.features.schema.names == ("genres", "year")
    assert dataset.users.features.schema.names == ("age", "gender", "occupation")
    [source] = dataset.manifest["sources"]
    assert source["path"] == str(archive)


def test_a_prepared_dataset_is_found_by_settings_and_content_not_by_place(tmp_path: Path) -> None:
    def config(folder: Path, **settings: Any) -> PrepareConfig:
        given = {"dataset": "table", "dataset.interactions": str(folder / "log.csv")}
        return make_config(tmp_path, **given, **settings)

    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        write_log(folder)
    path = find_or_prepare(config(first))
    assert find_or_prepare(config(second)) == path == prepared_folder(config(first))
    assert prepared_folder(config(first, **{"split.test_share": 0.2})) != path
    assert prepared_folder(config(first, **{"dataset.min_user_interactions": 2})) != path
    (second / "log.csv").write_text((second / "log.csv").read_text() + "u9,i1,1700000000,pc\n")
    assert prepared_folder(config(second)) != path
    assert find_or_prepare(config(first, dataset_dir=str(second))) == second
