"""A run that goes on from a bundle on a longer log, with more users and items than there were."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from pipelines.train import train
from recsys.bundle import Bundle, read_bundle
from recsys.config import TrainConfig, compose_config
from recsys.data import PreparedDataset, make_synthetic, read_prepared
from recsys.foundations import ConfigError, DataError, FormatError, MissingFileError
from recsys.models import TwoTower
from recsys.tracking import NullTracker

NEW_USERS, NEW_ITEMS, GONE = 30, 12, "gone-item"
KS = [1, 5, 10]
FIRST = {"dataset.interactions": "first.csv", "dataset.items": "first_items.csv"}


@dataclass(frozen=True)
class World:
    """A bundle of the first part of a log, and the settings of a run on all of it."""

    bundle: Path
    settings: dict[str, Any]
    dataset: PreparedDataset

    def old(self) -> Bundle:
        return read_bundle(self.bundle)


def write_tables(folder: Path) -> None:
    """Write a whole log and its first part, which lacks some users and items, and the items."""
    made = make_synthetic(
        num_users=150, num_items=80, num_interactions=4000, num_clusters=6, seed=0
    )
    log = made.interactions.to_pandas()[["user_id", "item_id", "timestamp"]]
    number = log["item_id"].str.strip("i").astype(int), log["user_id"].str.strip("u").astype(int)
    is_new = (number[0] >= 80 - NEW_ITEMS) | (number[1] >= 150 - NEW_USERS)
    early = log["timestamp"] < log["timestamp"].quantile(0.7)
    first = log[early & ~is_new]
    gone = first.head(40).drop_duplicates("user_id").assign(item_id=GONE)  # on sale no more
    pd.concat([first, gone]).to_csv(folder / "first.csv", index=False)
    log.to_csv(folder / "whole.csv", index=False)
    items = made.items.to_pandas().drop(columns="tags")
    items.to_csv(folder / "items.csv", index=False)
    more = pd.DataFrame({"item_id": [GONE], "category": ["of old"], "price": [3.0], "title": ["x"]})
    pd.concat([items[:-NEW_ITEMS], more]).to_csv(folder / "first_items.csv", index=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, tiny: dict[str, Any]) -> World:
    """Train on the first part of the log."""
    root = tmp_path_factory.mktemp("warm_start")
    write_tables(root)
    settings = {k: v for k, v in tiny.items() if not k.startswith("dataset.num_")} | {
        "dataset": "table",
        "dataset.items": str(root / "items.csv"),
        "+features.items.price": "numeric",
        "split": "leave_last_out",
        "optimizer": "adam",
        "model.item_bias": True,
        "model.user_tower.use_id": True,
    }
    first = settings | {
        "dataset.interactions": str(root / "first.csv"),
        "dataset.items": str(root / "first_items.csv"),
        "trainer.epochs": 25,
    }
    bundle = train(compose_config("train", TrainConfig, first), root / "first")
    settings |= {"dataset.interactions": str(root / "whole.csv"), "init_from": str(bundle)}
    prepared = settings | {"init_from": None, "trainer.epochs": 1}
    train(compose_config("train", TrainConfig, prepared), root / "cold")
    source = read_bundle(root / "cold" / "bundle").manifest["provenance"]["dataset_dir"]
    return World(bundle, settings | {"dataset_dir": source}, read_prepared(source))


def run(world: World, folder: Path, **changes: Any) -> tuple[Path, dict[str, Any]]:
    settings = world.settings | changes
    bundle = train(compose_config("train", TrainConfig, settings), folder)
    return bundle, json.loads((folder / "report.json").read_text())


@pytest.fixture(scope="module")
def straight(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go on for two epochs."""
    folder = tmp_path_factory.mktemp("straight")
    run(world, folder, **{"trainer.epochs": 2})
    return folder


def model_before_the_first_step(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> TwoTower:
    found: list[TwoTower] = []

    def stop(run: Any, **_: Any) -> None:
        found.append(run.step.model)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.train.fit", stop)
        with pytest.raises(KeyboardInterrupt):
            run(world, folder, **changes)
    return found[0]


def test_old_ids_keep_their_vectors_to_the_byte_and_new_ones_start_as_unknown(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_before_the_first_step(world, tmp_path, monkeypatch)
    old, dataset = world.old(), world.dataset
    tables, before = dict(model.tables()), dict(old.model.tables())
    sides = {
        "user_tower.ids.weight": (dataset.users.vocabulary, dataset.num_users, old.users),
        "item_tower.ids.weight": (dataset.items.vocabulary, dataset.num_items, old.items),
        "item_tower.bias.weight": (dataset.items.vocabulary, dataset.num_items, old.items),
    }
    for name, (vocabulary, num_rows, entities) in sides.items():
        known = {one: row for row, one in enumerate(entities.vocabulary.ids.to_pylist())}
        ids = vocabulary.ids.to_pylist()[:num_rows]
        places = [known.get(one, -1) for one in ids]
        assert any(place < 0 for place in places)
        assert sum(here != there for here, there in enumerate(places)) > num_rows / 2  # permuted
        for row, place in enumerate(places):
            trained = place >= 0 and entities.counts[place] > 0
            assert torch.equal(tables[name][row], before[name][place if trained else -1])
    layers = model.user_tower.history, old.model.user_tower.history
    assert torch.equal(layers[0].empty, layers[1].empty)  # type: ignore[union-attr]
    assert torch.equal(
        model.item_tower.rows.trained,
        torch.from_numpy(dataset.items.counts[: dataset.num_items] > 0),
    )


def test_the_recall_before_the_first_step_is_far_above_chance_and_the_report_has_both(
    world: World, straight: Path
) -> None:
    report = json.loads((straight / "report.json").read_text())
    start = report["warm_start"]
    assert start["bundle_id"] == world.old().bundle_id
    before, after = start["before"]["test"], start["after"]["test"]
    # About 80 items, of which a user has seen about 25: chance is 10 / 55.
    assert before["recall_at_10"] > 10 / 55 + 0.1
    assert after["recall_at_10"] == report["metrics"]["recall_at_10"]
    assert set(start["before"]) == {"validation", "test"}
    assert {f"recall_at_{k}" for k in KS} <= set(start["before"]["validation"])
    provenance = read_bundle(straight / "bundle").manifest["provenance"]
    assert provenance["warm_started_from"] == world.old().bundle_id


def test_the_difference_is_paired_over_the_test_users(straight: Path) -> None:
    start = json.loads((straight / "report.json").read_text())["warm_start"]
    values = [
        pq.read_table(path)["recall_at_10"].to_numpy()
        for path in (straight / "warm_start" / "test.parquet", straight / "per_user.parquet")
    ]
    difference = values[1] - values[0]
    found = start["difference"]["test"]
    assert found["metrics"]["recall_at_10"] == pytest.approx(difference.mean(), abs=1e-12)
    low, high = found["intervals"]["recall_at_10"]
    # Half the width of a 95 % interval is near 1.96 standard errors of the pairs' differences.
    error = difference.std() / np.sqrt(len(difference))
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.4)  # of 50 resamples


def test_what_came_along_is_counted(world: World, straight: Path) -> None:
    start = json.loads((straight / "report.json").read_text())["warm_start"]
    old, dataset = world.old(), world.dataset
    old_users = set(old.users.vocabulary.ids.to_pylist()[: old.num_users])
    users = set(dataset.users.vocabulary.ids.to_pylist()[: dataset.num_users])
    assert start["users"] == {
        "kept": len(users & old_users),
        "new": len(users - old_users),
        "dropped": len(old_users - users),
    }
    assert start["users"]["new"] >= NEW_USERS
    trained = old.items.counts[: old.num_items] > 0
    old_items = set(np.array(old.items.vocabulary.ids.to_pylist())[: old.num_items][trained])
    items = set(dataset.items.vocabulary.ids.to_pylist()[: dataset.num_items])
    assert start["items"] == {
        "kept": len(items & old_items),
        "new": len(items - old_items),
        "dropped": len(old_items - items),
    }
    assert GONE in old_items - items
    assert start["features"] == {"kept": 2, "new": 0, "dropped": 0}  # category and price


def test_the_start_is_logged_tracked_and_printed(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Recorder(NullTracker):
        """Keeps the numbers."""

        kept: ClassVar[dict[int, dict[str, float]]] = {}

        def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
            self.kept.setdefault(step, {}).update(metrics)

    monkeypatch.setattr("recsys.config.build.null_tracker", Recorder)
    caplog.set_level("INFO")
    _, report = run(world, tmp_path, **{"trainer.epochs": 1})
    start, kept = report["warm_start"], Recorder.kept
    assert kept[0]["warm_start_before_test_recall_at_10"] == pytest.approx(
        start["before"]["test"]["recall_at_10"], abs=1e-12
    )
    assert kept[0]["warm_start_items_new"] == start["items"]["new"]
    last = kept[1]
    for name in ("after", "difference"):
        value = start[name]["test"]
        value = value["metrics"] if name == "difference" else value
        assert last[f"warm_start_{name}_test_recall_at_10"] == value["recall_at_10"]
    items = start["items"]
    words = f"items {items['kept']} kept, {items['new']} new, {items['dropped']} dropped"
    assert any(words in message for message in caplog.messages)
    shown = capsys.readouterr().out
    assert f"Warm start from the bundle {start['bundle_id'][:12]}" in shown
    assert f"{start['before']['test']['recall_at_10']:.4f} [" in shown


def test_where_unknown_items_were_not_trained_new_ones_start_as_the_rarest_and_the_log_says_so(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    first: dict[str, Any] = {"init_from": None, "dataset_dir": None, "trainer.epochs": 1}
    first |= {name: str(world.bundle.parents[1] / file) for name, file in FIRST.items()}
    bundle, _ = run(world, tmp_path / "first", **first, **{"model.item_tower.id_dropout": 0.0})
    changes = {"init_from": str(bundle)}
    model = model_before_the_first_step(world, tmp_path / "next", monkeypatch, **changes)
    old, vocabulary = read_bundle(bundle), world.dataset.items.vocabulary
    counts, ids = old.item_counts, old.items.vocabulary
    trained = np.sort(counts[counts > 0])
    rarest = (counts > 0) & (counts <= trained[-(-len(trained) // 10) - 1])
    table, before = (dict(one.tables())["item_tower.ids.weight"] for one in (model, old.model))
    mean = before[:-1][torch.from_numpy(rarest)].mean(dim=0)
    names = vocabulary.ids.to_pylist()[: world.dataset.num_items]
    new = [row for row, place in enumerate(ids.rows(names)) if not 0 <= place < len(counts)]
    assert len(new) >= NEW_ITEMS
    for row in new:
        assert torch.allclose(table[row], mean)
    assert any(
        message.startswith("new items start at the mean of its rarest items, for the bundle was")
        for message in caplog.messages
    )


def test_a_feature_of_another_kind_starts_afresh_and_is_named(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    changes = {"dataset_dir": None, "+features.items.price": "bucket", "trainer.epochs": 1}
    _, report = run(world, tmp_path, **changes)
    assert report["warm_start"]["features"] == {"kept": 1, "new": 1, "dropped": 0}
    why = "it is bucket here, numeric in the bundle"
    assert report["warm_start"]["fresh_features"] == {"items.price": why}
    assert f"the feature items.price starts anew: {why}" in caplog.messages


def test_a_run_from_nothing_says_nothing_of_a_start(trained: Any) -> None:
    report = json.loads((trained.folder / "report.json").read_text())
    assert "warm_start" not in report
    assert "warm_started_from" not in read_bundle(trained.bundle).manifest["provenance"]
    assert not (trained.folder / "warm_start").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.embedding_dim": 8}, r"init_from: model\.embedding_dim is 8, .* trained with 16;"),
        (
            {"model.user_tower.history.encoder": "mean"},
            r"init_from: model\.user_tower\.history\.encoder is 'mean', .* trained with 'recency';",
        ),
        (
            {"model.user_tower.history.length": 7},
            r"init_from: model\.user_tower\.history\.length is 7, .* trained with 50;",
        ),
        ({"model.combine": "concat"}, r"model\.combine is 'concat', .* trained with 'sum';"),
        (
            {"model.item_tower.hidden": [8]},
            r"model\.item_tower\.hidden is \[8\], .* trained with \[\];",
        ),
        ({"model.temperature.learned": True}, r"model\.temperature\.learned is True, .* False;"),
        ({"model.item_bias": False}, r"model\.item_bias is False, .* trained with True;"),
    ],
)
def test_a_bundle_of_another_make_is_refused_before_data_is_read(
    world: World, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    absent = {"dataset_dir": None, "dataset.interactions": str(tmp_path / "no.csv")}
    with pytest.raises(ConfigError, match=words) as caught:
        run(world, tmp_path / "run", **absent | changes)
    assert str(caught.value).count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_rates_that_training_alone_reads_may_differ(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {
        "model.init_std": 0.01,
        "model.dropout": 0.1,
        "model.user_tower.id_dropout": 0.5,
        "model.user_tower.history.dropout": 0.1,
    }
    model = model_before_the_first_step(world, tmp_path, monkeypatch, **changes)
    assert model.user_tower.rows.dropout == 0.5


def test_what_is_no_bundle_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere.*manifest\.json"):
        run(world, tmp_path / "run", init_from=str(tmp_path / "nowhere"))
    with pytest.raises(FormatError, match="is not the manifest of a bundle"):
        run(world, tmp_path / "run", init_from=str(world.dataset.path))


def test_a_resumed_run_goes_on_from_its_checkpoint_and_not_from_the_bundle(
    world: World, straight: Path, tmp_path: Path
) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(world.bundle, parent)
    run(world, tmp_path / "run", **{"trainer.epochs": 1, "init_from": str(parent)})
    shutil.rmtree(parent)
    again = {"trainer.epochs": 2, "init_from": str(parent), "resume": True}
    bundle, report = run(world, tmp_path / "run", **again)
    assert read_bundle(bundle).bundle_id == read_bundle(straight / "bundle").bundle_id
    assert report == json.loads((straight / "report.json").read_text())


def test_a_run_killed_before_its_first_checkpoint_starts_from_the_bundle_again(
    world: World, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_before_the_first_step(world, tmp_path, monkeypatch, **{"trainer.epochs": 2})
    bundle, _ = run(world, tmp_path, **{"trainer.epochs": 2, "resume": True})
    assert read_bundle(bundle).bundle_id == read_bundle(straight / "bundle").bundle_id


def test_resuming_from_another_start_is_refused(world: World, straight: Path) -> None:
    with pytest.raises(ConfigError, match="resume: init_from is None, but the checkpoint"):
        run(world, straight, **{"init_from": None, "resume": True, "trainer.epochs": 2})


def test_a_damaged_note_of_the_start_is_refused_by_name(
    world: World, straight: Path, tmp_path: Path
) -> None:
    shutil.copytree(straight, tmp_path / "run")
    (tmp_path / "run" / "warm_start" / "test.parquet").write_bytes(b"no table")
    with pytest.raises(FormatError, match="warm_start is damaged"):
        run(world, tmp_path / "run", **{"resume": True, "trainer.epochs": 2})


def test_users_that_cannot_be_paired_are_refused(
    world: World, straight: Path, tmp_path: Path
) -> None:
    shutil.copytree(straight, tmp_path / "run")
    path = tmp_path / "run" / "warm_start" / "test.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(DataError, match="users of the test part are not those"):
        run(world, tmp_path / "run", **{"resume": True, "trainer.epochs": 2})
