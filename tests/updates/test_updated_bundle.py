"""What a new version of a bundle holds, says of itself, and shares with the one before."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle import Bundle, read_bundle, replace_index
from recsys.foundations import FormatError
from recsys.index import CHANGES_FILES, FaissIndex, IndexSettings, MeasuredRecall
from recsys.serving import Lookup
from recsys.updates import RecallSettings, compact_bundle
from recsys.updates.recall import RecallMeter

MakeBundle = Callable[..., Bundle]
Update = Callable[..., Bundle]
MakeItems = Callable[..., pa.Table]


def inner_of(index: Any) -> Any:
    return index.inner


def test_only_what_changed_is_written(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    bundle = make_bundle()
    new = update(bundle, make_items(["i1", "new"], seed=0))
    own = {"items.parquet", *CHANGES_FILES}
    for name in new.manifest["files"]:
        there = bundle.path / name
        assert (there.exists() and (new.path / name).samefile(there)) == (name not in own), name
    gone = update(new, remove=["i2"])
    assert (gone.path / "items.parquet").samefile(new.path / "items.parquet")
    assert read_bundle(bundle.path).bundle_id == bundle.bundle_id


def test_the_manifest_counts_the_changes_and_names_the_bundles_before(
    make_bundle: MakeBundle, update: Update, compact: Update, make_items: MakeItems
) -> None:
    first = make_bundle()
    second = update(first, make_items(["i1", "i2", "new"], seed=0), remove=["i3", "i4"])
    assert second.changes == {
        "added": 1,
        "replaced": 2,
        "restored": 0,
        "withdrawn": 2,
        "since_index": {"added": 1, "replaced": 2, "withdrawn": 2},
        "num_items": 29,
    }
    third = update(second, make_items(["i3", "new", "newer"], seed=1), remove=["i1"])
    assert third.changes == {
        "added": 1,
        "replaced": 2,
        "restored": 1,
        "withdrawn": 1,
        "since_index": {"added": 2, "replaced": 3, "withdrawn": 2},
        "num_items": 30,
    }
    fourth = compact(third)
    nothing = {"added": 0, "replaced": 0, "withdrawn": 2}
    assert fourth.changes["since_index"] == nothing
    assert fourth.changes["num_items"] == 30
    chain = [first, second, third, fourth]
    assert [one.manifest.get("parent") for one in chain] == [
        None,
        *(one.bundle_id for one in chain[:3]),
    ]
    assert [one.manifest.get("origin") for one in chain] == [None, *[first.bundle_id] * 3]
    assert [one.manifest["format_version"] for one in chain] == [3, 4, 4, 4]
    assert len({one.bundle_id for one in chain}) == 4
    assert third.manifest["provenance"]["origin_path"] == str(first.path.resolve())


def test_the_manifest_holds_the_index_recall_of_stored_users(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    bundle = make_bundle(IndexSettings(kind="ivf_flat", num_lists=6, num_probes=1))
    new = update(bundle, make_items(["i1", "new"], seed=0), remove=["i3"])
    noted = new.manifest["index_recall"]
    assert (noted["k"], noted["num_queries"]) == (5, 10)
    assert 0 < noted["low"] <= noted["mean"] <= noted["high"] <= 1
    assert noted["mean"] < 1  # one list of six is read
    again = update(new, make_items(["i5"], seed=1))
    assert again.manifest["index_recall"]["when_trained"] == noted["when_trained"]
    # By hand: of all users, how much of the exact five the old index finds.
    lookup = Lookup(bundle)
    found, exact = (
        lookup.recommend(k=5, exact=exact, exclude_seen=False).to_pandas()
        for exact in (False, True)
    )
    both = found.merge(exact, on=["user_id", "item_id"])
    trained = update(
        bundle, remove=["i1"], recall=RecallSettings(k=5, num_queries=99, seed=1, drift=0)
    ).manifest["index_recall"]["when_trained"]
    assert trained["num_queries"] == 20
    assert trained["mean"] == pytest.approx(len(both) / 100)


def test_an_index_of_scann_is_updated_shared_on_disk_and_built_anew(
    make_bundle: MakeBundle, update: Update, compact: Update, make_items: MakeItems
) -> None:
    pytest.importorskip("scann")
    bundle = make_bundle(IndexSettings(kind="scann", num_lists=4, num_probes=4, overfetch=30))
    updated = update(bundle, make_items(["i1", "new"], seed=0), remove=["i2"])
    for name in ("scann_config.pb", "hashed_dataset.npy"):
        old, new = (one.path / "index.scann" / name for one in (bundle, updated))
        assert old.samefile(new)
    assert updated.index.kind == "scann"
    folded = compact(updated)
    assert folded.index.kind == "scann"
    assert "index.faiss" not in folded.manifest["files"]
    queries = np.random.default_rng(0).normal(size=(20, folded.index.dim)).astype(np.float32)
    expected = updated.exact.search(queries, 5)
    for one in (updated, folded):
        found = one.index.search(queries, 5)
        assert np.array_equal(found.candidate_rows, expected.candidate_rows)
        assert np.array_equal(found.scores, expected.scores)


def test_compaction_is_advised_by_share_and_by_drift(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    bundle, items = make_bundle(), make_items(["i1", "new"], seed=0)
    assert update(bundle, items).manifest["compaction"] is None
    advised = update(bundle, items, max_share=0.05).manifest["compaction"]
    assert advised == "6.5% of the items have a vector beside the index, more than 5.0%"
    assert update(bundle, remove=["i1"], max_share=0.0).manifest["compaction"] is None


def test_the_index_is_trained_anew_where_its_old_centroids_find_too_little(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    bundle = make_bundle(IndexSettings(kind="ivf_flat", num_lists=4, num_probes=1))
    names = [f"new{n}" for n in range(60)]
    items = make_items(names, seed=0)
    vectors = rng.normal(size=(60, 8)) * 5
    items = items.append_column("vector", pa.array(vectors.tolist(), pa.list_(pa.float32())))
    updated = update(bundle, items)
    for drift, retrained in ((1.0, False), (0.0, True)):
        recall = RecallSettings(k=5, num_queries=20, seed=0, drift=drift)
        # What it was when trained: all, so that any index of one probe is below.
        updated.manifest["index_recall"]["when_trained"] |= {"mean": 1.0}
        done = compact_bundle(updated, tmp_path / f"compacted{drift}", recall=recall)
        assert done.retrained == retrained
        new = read_bundle(done.path)
        assert np.array_equal(new.item_vectors, np.asarray(updated.item_vectors))
        noted = new.manifest["index_recall"]
        assert (noted["when_trained"]["mean"] == 1.0) != retrained
        before, after = (
            inner_of(one.main_index).quantizer.reconstruct_n(0, 4) for one in (updated, new)
        )
        assert np.array_equal(before, after) != retrained


def test_an_index_trained_anew_that_finds_less_is_not_taken(
    make_bundle: MakeBundle,
    update: Update,
    make_items: MakeItems,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = make_bundle(IndexSettings(kind="ivf_flat", num_lists=4, num_probes=1))
    updated = update(bundle, make_items(["new"], seed=0))
    updated.manifest["index_recall"]["when_trained"] |= {"mean": 1.0}
    found = iter(
        MeasuredRecall(mean=mean, low=mean - 0.1, high=mean + 0.1, k=5, num_queries=20)
        for mean in (0.6, 0.4)
    )
    monkeypatch.setattr(RecallMeter, "measure", lambda *_: next(found))
    recall = RecallSettings(k=5, num_queries=20, seed=0, drift=0.0)
    done = compact_bundle(updated, tmp_path / "compacted", recall=recall)
    assert (done.retrained, done.kept) == (False, None)
    assert done.recall is not None
    assert done.recall.mean == 0.6
    new = read_bundle(done.path)
    assert new.manifest["index_recall"]["when_trained"]["mean"] == 0.6
    before, after = (
        inner_of(one.main_index).quantizer.reconstruct_n(0, 4) for one in (updated, new)
    )
    np.testing.assert_array_equal(before, after)


def test_an_index_of_scann_that_finds_less_is_built_once_and_is_the_new_measure(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems, tmp_path: Path
) -> None:
    pytest.importorskip("scann")
    bundle = make_bundle(IndexSettings(kind="scann", num_lists=4, num_probes=1, overfetch=1))
    updated = update(bundle, make_items(["new"], seed=0))
    updated.manifest["index_recall"]["when_trained"] |= {"mean": 1.0}
    recall = RecallSettings(k=5, num_queries=20, seed=0, drift=0.0)
    done = compact_bundle(updated, tmp_path / "compacted", recall=recall)
    assert not done.retrained
    assert done.recall is not None
    assert done.recall.mean < 1.0
    noted = read_bundle(done.path).manifest["index_recall"]
    assert noted["when_trained"]["mean"] == noted["mean"] == done.recall.mean


def test_another_index_takes_the_changes_in(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems, tmp_path: Path
) -> None:
    updated = update(make_bundle(), make_items(["i1", "new"], seed=0), remove=["i3"])
    index = FaissIndex.build(np.asarray(updated.item_vectors), IndexSettings(kind="hnsw", m=4))
    path = replace_index(updated, tmp_path / "other", index, scores={}, provenance={})
    other = read_bundle(path)
    assert other.index.kind == "hnsw"
    assert (other.manifest["parent"], other.manifest["origin"]) == (
        updated.bundle_id,
        updated.manifest["origin"],
    )
    assert len(other.index_changes.rows) == 0
    found = Lookup(other).recommend(k=31, exact=True)
    assert found.equals(Lookup(updated).recommend(k=31, exact=True))


def test_a_damaged_or_foreign_change_is_refused(
    make_bundle: MakeBundle, update: Update, make_items: MakeItems
) -> None:
    new = update(make_bundle(), make_items(["i1", "new"], seed=0), remove=["i3"])
    where = new.path / "withdrawn_rows.npy"
    content = where.read_bytes()
    where.unlink()
    with pytest.raises(FormatError, match=r"withdrawn_rows\.npy is missing"):
        read_bundle(new.path)
    where.write_bytes(content[:-1] + b"\x01")
    with pytest.raises(FormatError, match=r"withdrawn_rows\.npy is damaged"):
        read_bundle(new.path)
    where.write_bytes(content)
    manifest = json.loads((new.path / "manifest.json").read_text())
    assert manifest["format_version"] == 4
    assert read_bundle(new.path).bundle_id == new.bundle_id
