"""The towers as ONNX against the towers themselves, family by family."""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import NO_TIME, Entities, FeatureSchema, FeatureSpec, FeatureTable, Vocabulary
from recsys.export.onnx_files import write_onnx
from recsys.foundations import ConfigError, MissingExtraError, Ragged
from recsys.index import FaissIndex, IndexSettings
from recsys.models import (
    ModelSpec,
    QueryInputs,
    build_two_tower,
    encode_candidates,
    encode_queries,
)
from recsys.models.tower_spec import ItemTowerSpec, UserTowerSpec

USERS, ITEMS = 40, 60
KINDS = FeatureSchema(
    (
        FeatureSpec(name="colour", kind="categorical", size=4, values=("red", "green", "blue")),
        FeatureSpec(name="tags", kind="multi", size=6, values=("a", "b", "c", "d", "e")),
        FeatureSpec(name="price", kind="numeric", size=1, mean=3.0, scale=2.0),
        FeatureSpec(name="age", kind="bucket", size=5, edges=(1.0, 2.0, 3.0)),
        FeatureSpec(name="title", kind="text", size=32),
        FeatureSpec(name="photo", kind="vector", size=7),
    )
)
NO_FEATURES = FeatureSchema()


def make_features(schema: FeatureSchema, num_rows: int, seed: int) -> FeatureTable:
    """Make rows of features, of which about a quarter is missing."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for spec in schema:
        missing = rng.random(num_rows) < 0.25
        if spec.kind in ("multi", "text"):
            lengths = np.where(missing, 0, rng.integers(0, 4, num_rows))
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            values = rng.integers(0, spec.size, offsets[-1]).astype(np.int32)
            columns[spec.name] = Ragged(offsets, values)
        elif spec.kind == "numeric":
            numbers = rng.normal(size=num_rows).astype(np.float32)
            columns[spec.name] = np.where(missing, np.float32("nan"), numbers)
        elif spec.kind == "vector":
            numbers = rng.normal(size=(num_rows, spec.size)).astype(np.float32)
            columns[spec.name] = np.where(missing[:, None], np.float32(0), numbers)
        else:
            codes = rng.integers(1, spec.size, num_rows).astype(np.int32)
            columns[spec.name] = np.where(missing, np.int32(0), codes)
    return FeatureTable(schema, columns, num_rows)


def make_queries(
    schema: FeatureSchema, context: FeatureSchema, num_rows: int, width: int, seed: int
) -> QueryInputs:
    """Make queries: users unknown and known, histories with gaps, repeats and without an item."""
    rng = np.random.default_rng(seed)
    histories = rng.integers(-1, ITEMS, (num_rows, width))
    histories[np.arange(width) >= rng.integers(0, width + 1, num_rows)[:, None]] = -1
    times = 10**15 - np.cumsum(rng.integers(0, 10**9, histories.shape) ** 2 // 10**6, axis=1)
    times = np.where((histories < 0) | (rng.random(histories.shape) < 0.2), NO_TIME, times)
    return QueryInputs(
        rng.integers(-1, USERS + 3, num_rows),
        histories,
        make_features(schema, num_rows, seed + 1),
        make_features(context, num_rows, seed + 2),
        times,
    )


def make_bundle(
    spec: ModelSpec, schema: FeatureSchema = NO_FEATURES, context: FeatureSchema = NO_FEATURES
) -> Bundle:
    """Make a bundle of towers with random values; ten of the items never occur in training."""
    torch.manual_seed(0)
    counts = np.where(np.arange(ITEMS) % 6 == 5, 0, 1 + np.arange(ITEMS))
    features = make_features(schema, ITEMS, 1)
    model = build_two_tower(
        spec,
        num_users=USERS,
        num_items=ITEMS,
        user_schema=schema,
        item_schema=schema,
        context_schema=context,
        item_counts=counts,
        item_features=features,
    ).eval()
    with torch.no_grad():
        for values in model.parameters():  # nothing stays at 0, where it could not be told apart
            values.add_(torch.randn(values.shape) * 0.3)
    if model.ridge is not None:
        model.ridge.set_item_factors(torch.randn(ITEMS, spec.ridge_dim) * 0.4)
    vectors = encode_candidates(model, features, ITEMS)
    user_ids, item_ids = (
        Vocabulary.from_ids([f"{who}{n}" for n in range(count)])
        for who, count in (("u", USERS), ("i", ITEMS))
    )
    return Bundle(
        path=Path("bundle"),
        manifest={"bundle_id": "b", "config": {}, "scores": {}, "dataset_fingerprint": "d"},
        model=model,
        users=Entities(user_ids, np.ones(USERS, np.int64), make_features(schema, USERS, 2), None),
        items=Entities(item_ids, counts, features, None),
        num_users=USERS,
        num_items=ITEMS,
        num_model_items=ITEMS,
        withdrawn=np.zeros(0, np.int64),
        context_schema=context,
        histories=Ragged(np.zeros(USERS + 1, np.int64), np.zeros(0, np.int64)),
        history_times=None,
        item_vectors=vectors,
        index=FaissIndex.build(vectors, IndexSettings()),
        exclude_seen=True,
        clock="time",
    )


def padded(column: Any) -> NDArray[Any]:
    """Lay a column out as a graph takes it."""
    if not isinstance(column, Ragged):
        numbers: NDArray[Any] = column
        return numbers.astype(np.int64) if numbers.dtype == np.int32 else numbers
    block = np.full((len(column), max(1, int(column.lengths.max(initial=0)))), -1, np.int64)
    for row in range(len(column)):
        values = column.rows[column.offsets[row] : column.offsets[row + 1]]
        block[row, : len(values)] = values
    return block


class Graphs:
    """Both graphs in onnxruntime."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self.users, self.items = (
            onnxruntime.InferenceSession(folder / f"{who}_tower.onnx", options)
            for who in ("user", "item")
        )

    def embed_users(self, queries: QueryInputs) -> NDArray[np.float32]:
        fed = {f"user.{name}": padded(c) for name, c in queries.features.columns.items()}
        fed |= {f"context.{name}": padded(c) for name, c in queries.context.columns.items()}
        fed |= {"user_row": queries.user_rows, "history": queries.histories}
        return _run(self.users, fed | {"history_times": queries.times})

    def embed_items(self, rows: NDArray[np.int64], table: FeatureTable) -> NDArray[np.float32]:
        fed = {f"item.{name}": padded(c) for name, c in table.columns.items()}
        return _run(self.items, fed | {"item_row": rows})


def _run(session: onnxruntime.InferenceSession, fed: dict[str, Any]) -> NDArray[np.float32]:
    wanted = {entry.name: fed[entry.name] for entry in session.get_inputs()}
    (vectors,) = session.run(["vectors"], wanted)
    assert isinstance(vectors, np.ndarray)
    return vectors


def assert_near(got: NDArray[np.float32], wanted: NDArray[np.float32]) -> None:
    """Assert that no number differs by more than 1e-5 of the largest of its vector."""
    assert got.shape == wanted.shape
    assert got.dtype == np.float32
    scale = np.maximum(np.abs(wanted).max(axis=-1, keepdims=True), 1e-3)
    assert np.isfinite(got).all()
    assert (np.abs(got - wanted) / scale).max() <= 1e-5


def user(**values: Any) -> UserTowerSpec:
    """Make the user tower of a family that reads histories of 20 items alone, unless told."""
    alone: dict[str, Any] = {"use_id": False, "features": (), "context": ()}
    return UserTowerSpec(**alone | {"history_length": 20} | values)


NO_ITEM_FEATURES = ItemTowerSpec(features=())
SETTINGS: dict[str, dict[str, Any]] = {
    "two_tower": {"user_tower": UserTowerSpec(history_length=20)},
    "ids": {
        "user_tower": user(use_id=True, history="none", hidden=(12,)),
        "item_tower": ItemTowerSpec(features=(), hidden=(12,)),
    },
    "factorization": {
        "item_bias": True,
        "user_tower": user(use_id=True, history="none"),
        "item_tower": NO_ITEM_FEATURES,
    },
    "features": {
        "normalize": True,
        "user_tower": user(history="mean", history_table="tower"),
        "item_tower": ItemTowerSpec(use_id=False),
    },
    "history": {"user_tower": user(), "item_tower": NO_ITEM_FEATURES},
    "profile": {
        "item_bias": True,
        "ridge_dim": 16,
        "user_tower": user(decay=1.0, exponent=0.75),
        "item_tower": NO_ITEM_FEATURES,
    },
    "transformer": {
        "item_bias": True,
        "ridge_dim": 16,
        "user_tower": user(
            features=None,
            history="transformer",
            history_table="shared",
            time_gaps=True,
            num_layers=2,
        ),
    },
    "absolute positions": {
        "user_tower": user(history="transformer", positions="absolute"),
        "item_tower": NO_ITEM_FEATURES,
    },
    "gru": {"user_tower": user(history="gru", time_gaps=True, num_layers=2)},
    "attention": {"user_tower": user(history="attention"), "item_tower": NO_ITEM_FEATURES},
    "interests": {
        "item_bias": True,
        "ridge_dim": 16,
        "user_tower": user(
            use_id=True, features=None, history="attention", num_interests=3, exponent=1.0
        ),
    },
    "gate": {"user_tower": user(gate_dim=4), "item_tower": NO_ITEM_FEATURES},
    "concat": {
        "user_tower": UserTowerSpec(
            history_length=20, combine="concat", norm="batch_norm", hidden=(12,)
        ),
        "item_tower": ItemTowerSpec(combine="concat", norm="layer_norm", hidden=(12,)),
    },
}
FAMILIES: dict[str, ModelSpec] = {
    name: ModelSpec(embedding_dim=16, init_std=0.3, **values) for name, values in SETTINGS.items()
}
QUICK = ("two_tower", "transformer")
marked = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES
]
Exported = Callable[[str], tuple[Bundle, Path]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Give a function that exports a family, once."""
    made: dict[str, tuple[Bundle, Path]] = {}

    def run(family: str) -> tuple[Bundle, Path]:
        if family not in made:
            folder, bundle = (
                tmp_path_factory.mktemp("onnx"),
                make_bundle(FAMILIES[family], KINDS, KINDS),
            )
            write_onnx(bundle, folder)
            made[family] = bundle, folder
        return made[family]

    return run


@pytest.mark.parametrize("family", marked)
def test_gives_the_vectors_of_the_towers(family: str, exported: Exported) -> None:
    bundle, folder = exported(family)
    graphs = Graphs(folder)
    for batch, width in ((1, 1), (7, 5), (512, 20), (7, 33)):
        queries = make_queries(KINDS, KINDS, batch, width, seed=batch + width)
        assert_near(graphs.embed_users(queries), encode_queries(bundle.model, queries))
    for batch in (1, 7, 512):
        rows = np.random.default_rng(batch).integers(-1, ITEMS + 3, batch)
        table = make_features(KINDS, batch, seed=batch)
        with torch.no_grad():
            wanted = bundle.model.embed_candidates(rows, table).numpy()
        assert_near(graphs.embed_items(rows, table), wanted)


@pytest.mark.parametrize("family", marked)
def test_gives_the_vectors_of_users_of_whom_nothing_is_known(
    family: str, exported: Exported
) -> None:
    bundle, folder = exported(family)
    empty = KINDS.encode(pa.table({"none of them": np.zeros(2)}))
    histories = np.full((2, 4), -1)
    times = np.full((2, 4), NO_TIME)
    queries = QueryInputs(np.array([-1, USERS]), histories, empty, empty, times)
    assert_near(Graphs(folder).embed_users(queries), encode_queries(bundle.model, queries))


@pytest.mark.parametrize("family", marked)
def test_finds_the_same_items(family: str, exported: Exported) -> None:
    bundle, folder = exported(family)
    queries = make_queries(KINDS, KINDS, 200, 20, seed=5)
    got, wanted = Graphs(folder).embed_users(queries), encode_queries(bundle.model, queries)
    found, right = bundle.exact.search(got, 10), bundle.exact.search(wanted, 10)
    np.testing.assert_array_equal(found.candidate_rows, right.candidate_rows)


@pytest.mark.parametrize("family", QUICK)
@settings(max_examples=40)
@given(batch=st.integers(1, 9), width=st.integers(1, 40), seed=st.integers(0, 2**16))
def test_gives_the_vectors_of_any_batch(
    family: str, exported: Exported, batch: int, width: int, seed: int
) -> None:
    bundle, folder = exported(family)
    queries = make_queries(KINDS, KINDS, batch, width, seed)
    assert_near(_graphs(folder).embed_users(queries), encode_queries(bundle.model, queries))


@functools.cache
def _graphs(folder: Path) -> Graphs:
    return Graphs(folder)


def test_the_guide_names_the_inputs_of_the_graphs_and_the_files(exported: Exported) -> None:
    bundle, folder = exported("two_tower")
    guide = json.loads((folder / "tower_inputs.json").read_text())
    graphs = Graphs(folder)
    for name, session in (("user_tower", graphs.users), ("item_tower", graphs.items)):
        said = {entry["name"]: entry for entry in guide[name]["inputs"]}
        assert list(said) == [entry.name for entry in session.get_inputs()]
        for entry in session.get_inputs():
            assert entry.type in ("tensor(int64)", "tensor(float)")
            assert (entry.type == "tensor(int64)") == (said[entry.name]["dtype"] == "int64")
            assert entry.shape == said[entry.name]["shape"]
        assert session.get_outputs()[0].shape == guide[name]["output"]["shape"] == ["batch", 16]
    assert guide["bundle_id"] == "b"
    assert str(Path(write_onnx.__code__.co_filename).parent).encode() not in b"".join(
        file.read_bytes() for file in folder.iterdir()
    )  # no path of the machine
    files = {file.name for file in folder.iterdir()}
    fixed = {"user_tower.onnx", "item_tower.onnx", "tower_inputs.json"}
    assert files == fixed | {"users.parquet", "items.parquet"}
    rows = pq.read_table(folder / "items.parquet").to_pydict()
    assert rows == {"item_id": [f"i{n}" for n in range(ITEMS)], "row": list(range(ITEMS))}
    assert bundle.model.item_tower.ids is not None
    assert bundle.model.item_tower.ids.sparse  # as before


def test_values_that_are_large_stand_beside_the_graph(tmp_path: Path) -> None:
    bundle = make_bundle(FAMILIES["factorization"])
    paths = write_onnx(bundle, tmp_path, most_inline_bytes=1000)
    towers = [f"{who}_tower.onnx{end}" for who in ("user", "item") for end in ("", ".data")]
    rows = ["tower_inputs.json", "users.parquet", "items.parquet"]
    assert [path.name for path in paths] == towers + rows
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    queries = make_queries(KINDS, KINDS, 7, 5, seed=0)
    assert_near(Graphs(tmp_path).embed_users(queries), encode_queries(bundle.model, queries))


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"recsys-retrieval\[onnx\]"):
        write_onnx(make_bundle(FAMILIES["history"]), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_an_older_exporter_lacks_is_refused_by_the_name_of_the_tower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise torch.onnx.OnnxExporterError("no such operator")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(ConfigError, match="could not export the user tower: the exporter of torch"):
        write_onnx(make_bundle(FAMILIES["history"]), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_histories_that_read_the_item_tower_know_of_items_that_came_later(tmp_path: Path) -> None:
    bundle = make_bundle(FAMILIES["features"], KINDS, KINDS)
    bundle.model.item_features = make_features(KINDS, ITEMS + 5, 1)
    bundle.model.num_history_items = ITEMS + 5
    write_onnx(bundle, tmp_path)
    queries = make_queries(KINDS, KINDS, 9, 5, seed=0)
    queries.histories[:, 0] = ITEMS + np.arange(9) % 5
    assert_near(Graphs(tmp_path).embed_users(queries), encode_queries(bundle.model, queries))
