"""The stages `update` and `compact`, from the files that people have, and what other stages say."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from pipelines.baselines import baselines
from pipelines.compact import compact
from pipelines.diagnose import diagnose
from pipelines.index import index
from pipelines.update import update
from recsys.bundle import read_bundle
from recsys.config import (
    BaselinesConfig,
    CompactConfig,
    DiagnoseConfig,
    ReindexConfig,
    UpdateConfig,
    compose_config,
)
from recsys.foundations import ConfigError, DataError, MissingFileError
from recsys.serving import Lookup

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample"
COMMAND = [sys.executable, "-c", "import sys; from recsys.cli import main; sys.exit(main())"]
RECALL = {"recall.k": 5, "recall.num_queries": 20, "threads": 1}
MARKED = ("utf-8-sig", "utf-16")
HEADER = "item_id,title,category,tags,price"


def run_update(folder: Path, bundle: Path, **settings: Any) -> Path:
    given = {"bundle": str(bundle), **RECALL, **settings}
    return update(compose_config("update", UpdateConfig, given), folder)


def run(*arguments: str, cwd: Path) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


def test_the_command_updates_a_bundle_from_a_csv_like_the_one_it_was_trained_on(
    tmp_path: Path,
) -> None:
    names = ("user=customer", "item=product", "timestamp=time")
    columns = [f"dataset.columns.{one}" for one in names]
    files = [f"dataset.{one}={SAMPLE}/{one}.csv" for one in ("interactions", "items")]
    small = ["trainer.epochs=1", "model.embedding_dim=8", "tracking=none", "evaluation.k=[5]"]
    small += ["loss.num_sampled=16", "evaluation.num_bootstrap=10", "threads=1"]
    features = ["+features.items.tags={kind: multi, separator: '|'}", "+features.items.category={}"]
    status, said = run(
        *("train", "dataset=table", *files, *columns, *small, *features, "run_dir=t"), cwd=tmp_path
    )
    assert status == 0, said
    (tmp_path / "new.csv").write_text(
        "product,title,category,price,tags,colour\n"
        "00099,white tea,tea,5.10,fair trade|organic,white\n"
        "00100,green tea,tea,4.90,local,green\n"
    )
    update_it = ("update", "bundle=t/bundle", "items=new.csv", "threads=1")
    status, said = run(*update_it, "remove=[00101,00403]", "run_dir=u", cwd=tmp_path)
    assert status == 0, said
    assert "1 added, 1 replaced, 0 restored, 2 withdrawn" in said
    assert "columns of items that the bundle does not keep: colour" in said
    bundle = read_bundle(tmp_path / "u" / "bundle")
    lookup = Lookup(bundle)
    shown = lookup.describe_items(["00099", "00100"]).to_pylist()
    assert [(row["title"], row["price"]) for row in shown] == [
        ("white tea", "5.10"),
        ("green tea", "4.90"),
    ]
    tags = bundle.items.features.columns["tags"]
    values = next(one for one in bundle.items.features.schema if one.name == "tags").values
    row = int(bundle.items.vocabulary.rows(["00099"])[0])
    assert {values[code - 1] for code in tags[row]} == {"fair trade", "organic"}
    found = lookup.recommend(k=999, where="tags contains organic and price > 5.05")
    assert "00099" in found["item_id"].to_pylist()
    found = lookup.recommend(k=999, exclude_seen=False)
    assert not {"00101", "00403"} & set(found["item_id"].to_pylist())
    # What is refused: one line, status 2, no folder.
    status, said = run(*update_it, "remove=[101]", "run_dir=none", cwd=tmp_path)
    assert status == 2
    assert "recsys: error: remove names '101', which the bundle does not recommend" in said
    assert not (tmp_path / "none" / "bundle").exists()
    status, said = run("compact", "bundle=u/bundle", "run_dir=c", "threads=1", cwd=tmp_path)
    assert status == 0, said
    compacted = Lookup(read_bundle(tmp_path / "c" / "bundle"))
    assert compacted.recommend(k=9, exact=True).equals(lookup.recommend(k=9, exact=True))


def write_table(folder: Path, rows: list[str]) -> str:
    path = folder / "items.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return str(path)


def test_ids_to_withdraw_stand_in_a_text_a_table_or_the_setting(
    trained: Any, tmp_path: Path
) -> None:
    ids = read_bundle(trained.bundle).items.vocabulary.ids.to_pylist()[:2]
    (tmp_path / "ids.txt").write_text(f"\n{ids[0]}\r\n{ids[1]} \n{ids[0]}\n\n")
    pd.DataFrame({"item_id": ids, "why": "sold out"}).to_parquet(tmp_path / "ids.parquet")
    (tmp_path / "ids.csv").write_text("\n".join(["item_id", *ids]) + "\n")
    for encoding in MARKED:  # with a byte order mark
        (tmp_path / f"ids.{encoding}").write_text("\n".join(ids), encoding=encoding)
    bundles = set()
    for number, remove in enumerate(
        [*(str(tmp_path / f"ids.{kind}") for kind in ("txt", "parquet", "csv", *MARKED)), ids]
    ):
        path = run_update(tmp_path / str(number), trained.bundle, remove=remove)
        bundles.add(read_bundle(path).bundle_id)
    assert len(bundles) == 1  # the same content has the same id


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        (
            {"remove": "nowhere.txt"},
            MissingFileError,
            r"remove must be a list of ids, remove",
        ),
        ({"items": "nowhere.csv"}, MissingFileError, "nowhere.csv"),
        ({"items": "twice"}, DataError, "The item 'x' stands in 2 rows; each item must stand in"),
        ({"items": "twice", "id_column": "sku"}, DataError, "'sku'"),
        ({"remove": ["nope"]}, DataError, "remove names 'nope', which the bundle does not"),
    ],
)
def test_bad_files_are_refused_and_nothing_is_written(
    trained: Any, tmp_path: Path, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    row = "x,X,category1,tag-1,1"
    if settings.get("items") == "twice":
        settings = settings | {"items": write_table(tmp_path, [row, row])}
    with pytest.raises(error, match=words):
        run_update(tmp_path / "run", trained.bundle, **settings)
    assert not (tmp_path / "run").exists()


def test_lists_of_a_text_file_are_those_of_a_table(trained: Any, tmp_path: Path) -> None:
    read = pq.read_table(trained.bundle / "items.parquet")
    names = [name for name in read.column_names if name.startswith("display_")]
    old = read.select(names).slice(0, 3).rename_columns([n.removeprefix("display_") for n in names])
    items = old.append_column("item_id", [["new1", "new2", "new3"]])
    pq.write_table(items, tmp_path / "items.parquet")
    plain = items.to_pandas()
    plain["tags"] = ["/".join(one) for one in plain["tags"]]
    plain.to_csv(tmp_path / "items.tsv", index=False, sep="\t")
    first = run_update(tmp_path / "a", trained.bundle, items=str(tmp_path / "items.parquet"))
    second = run_update(
        tmp_path / "b", trained.bundle, items=str(tmp_path / "items.tsv"), list_separator="/"
    )
    one, other = (read_bundle(path) for path in (first, second))
    assert (one.path / "items.parquet").read_bytes() == (other.path / "items.parquet").read_bytes()
    assert one.bundle_id == other.bundle_id


def test_stages_that_need_the_items_of_the_data_set_name_the_bundle_before(
    trained: Any, tmp_path: Path, run_evaluate: Any
) -> None:
    ids = read_bundle(trained.bundle).items.vocabulary.ids.to_pylist()
    updated = run_update(tmp_path / "u", trained.bundle, remove=ids[:1])
    origin = read_bundle(trained.bundle).bundle_id
    given = {"bundle": str(updated), "threads": 1, "tracking": "none"}
    words = f"has other items than the dataset .* before the first update, {origin}, which lay in"
    with pytest.raises(ConfigError, match=words):
        run_evaluate(tmp_path / "e", bundle=str(updated))
    with pytest.raises(ConfigError, match=words):
        baselines(compose_config("baselines", BaselinesConfig, given), tmp_path / "b")
    with pytest.raises(ConfigError, match=words):
        diagnose(compose_config("diagnose", DiagnoseConfig, given), tmp_path / "d")


def test_a_model_goes_on_from_an_updated_bundle(
    trained: Any, train_in: Any, tmp_path: Path
) -> None:
    ids = read_bundle(trained.bundle).items.vocabulary.ids.to_pylist()
    rows = [f"{one},T,category1,tag-1,1" for one in (ids[0], "new")]
    items = write_table(tmp_path, rows)
    updated = run_update(tmp_path / "u", trained.bundle, items=items, remove=ids[1:2])
    starts = {
        name: read_bundle(
            train_in(tmp_path / name, {"init_from": str(bundle), "trainer.epochs": 1})
        ).bundle_id
        for name, bundle in (("old", trained.bundle), ("new", updated))
    }
    assert starts["old"] == starts["new"]  # the model is the same


def test_another_index_of_an_updated_bundle_takes_its_changes_in(
    trained: Any, tmp_path: Path, recommend_to: Any
) -> None:
    ids = read_bundle(trained.bundle).items.vocabulary.ids.to_pylist()
    items = write_table(tmp_path, [f"{one},T,category1,tag-1,1" for one in (ids[0], "new")])
    updated = run_update(tmp_path / "u", trained.bundle, items=items, remove=ids[1:3])
    given = {"bundle": str(updated), "index": "hnsw", "threads": 1}
    other = index(compose_config("index", ReindexConfig, given), tmp_path / "i")
    compacted = compact(
        compose_config("compact", CompactConfig, {"bundle": str(updated), **RECALL}),
        tmp_path / "c",
    )
    lists = [
        recommend_to(tmp_path / f"{number}.parquet", bundle, k=9, exact=True)
        for number, bundle in enumerate((updated, other, compacted))
    ]
    assert lists[0].equals(lists[1])
    assert lists[0].equals(lists[2])
    assert not set(lists[0]["item_id"]) & set(ids[1:3])
