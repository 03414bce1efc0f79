"""The towers of a bundle as ONNX files, with all that is needed to feed them."""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from recsys.bundle import Bundle
from recsys.data import Vocabulary
from recsys.export.exported_items import ExportedItems
from recsys.export.onnx_guide import write_guide
from recsys.export.onnx_inputs import BATCH, TowerInput, item_inputs, user_inputs
from recsys.export.onnx_towers import ItemGraph, UserGraph
from recsys.export.request import ExportRequest
from recsys.foundations import ConfigError, MissingExtraError, atomic_file, atomic_folder
from recsys.models import inference
from recsys.models.embeddings import EmbeddingTable

OPSET = 18
MOST_INLINE_BYTES = 1_500_000_000  # a protocol buffer holds 2 GiB
_EXAMPLE_BATCH, _EXAMPLE_LENGTH = 3, 5  # neither is 0 or 1, which would be taken for fixed
_MAKERS = ("torch.export", "torch.onnx", "onnxscript", "onnx_ir")


def write_onnx(
    bundle: Bundle, folder: Path, *, most_inline_bytes: int = MOST_INLINE_BYTES
) -> list[Path]:
    """Write both towers as ONNX, and what says how they are fed.

    The vectors are those of `Lookup.embed_users` and `Lookup.embed_items`, up to rounding.

    Args:
        bundle: Its index and item vectors are not written.
        folder: Where the files go; each appears whole or not at all.
        most_inline_bytes: Values of a tower beyond this size stand in a file beside its graph.

    Returns:
        `user_tower.onnx` and `item_tower.onnx`, each followed by its `.data` file if there is one;
        `tower_inputs.json`; then the Parquet files that it names.

    Raises:
        MissingExtraError: The exporter is not installed.
        ConfigError: The exporter of an older torch does not know a part of a tower.
    """
    _check_installed()
    users, items = user_inputs(bundle), item_inputs(bundle)
    paths = []
    with inference(bundle.model), _dense_tables(bundle.model):
        graphs: dict[str, tuple[nn.Module, list[TowerInput]]] = {
            "user_tower": (UserGraph(bundle.model, users), users),
            "item_tower": (ItemGraph(bundle.model, items), items),
        }
        for name, (graph, inputs) in graphs.items():
            paths += _write_graph(graph.eval(), inputs, folder, name, most_inline_bytes)
    paths.append(write_guide(bundle, folder / "tower_inputs.json", users, items))
    named = {entry.encoding.get("file") for entry in (*users, *items)}
    for who, ids in (("user", bundle.users.vocabulary), ("item", bundle.items.vocabulary)):
        if f"{who}s.parquet" in named:
            num_rows = bundle.num_users if who == "user" else bundle.num_items
            paths.append(_write_rows(folder / f"{who}s.parquet", f"{who}_id", ids, num_rows))
    return paths


def write_towers(items: ExportedItems, request: ExportRequest, folder: Path) -> None:  # noqa: ARG001
    """Write the form `onnx` of an export; see `write_onnx`. The request says nothing of it."""
    write_onnx(items.bundle, folder)


def _check_installed() -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"form=onnx needs the library {error.name}: pip install 'recsys-retrieval[onnx]'."
        ) from error


@contextlib.contextmanager
def _dense_tables(model: nn.Module) -> Iterator[None]:
    """Let the tables look rows up as torch does, which the exporter knows, for a while."""
    tables = [part for part in model.modules() if isinstance(part, EmbeddingTable) and part.sparse]
    for table in tables:
        table.sparse = False
    try:
        yield
    finally:
        for table in tables:
            table.sparse = True


def _write_graph(
    graph: nn.Module, inputs: list[TowerInput], folder: Path, name: str, most_inline_bytes: int
) -> list[Path]:
    """Write `NAME.onnx`, and `NAME.onnx.data` where the values are large."""
    try:
        program = _trace(graph, inputs)
    except torch.onnx.OnnxExporterError as error:
        raise ConfigError(
            f"form=onnx could not export the {name.replace('_', ' ')}: the exporter of torch "
            f"{torch.__version__} lacks a part of it; torch 2.13 has all of them."
        ) from error
    values = {v.data_ptr(): v.nbytes for v in (*graph.parameters(), *graph.buffers())}
    path = folder / f"{name}.onnx"
    if sum(values.values()) <= most_inline_bytes:
        with atomic_file(path) as temporary:
            program.save(temporary, external_data=False)
        return [path]
    data = folder / f"{name}.onnx.data"  # the graph names it
    with atomic_folder(folder / f".{name}.parts") as parts:
        program.save(parts / path.name, external_data=True)
    parts = folder / f".{name}.parts"
    for file in (data, path):  # the graph last: it is there when its values are
        (parts / file.name).replace(file)
    parts.rmdir()
    return [path, data]


def _trace(graph: nn.Module, inputs: list[TowerInput]) -> Any:
    """Give the program of a graph; sizes that have a name may change from call to call."""
    dims = {size: torch.export.Dim(size) for entry in inputs for size in _named(entry)}
    shapes = [
        {axis: dims[size] for axis, size in enumerate(entry.shape) if isinstance(size, str)}
        for entry in inputs
    ]
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")  # the exporter's own
        program = torch.onnx.export(
            graph,
            tuple(map(_example, inputs)),
            dynamo=True,
            dynamic_shapes=(tuple(shapes),),
            input_names=[entry.name for entry in inputs],
            output_names=["vectors"],
            opset_version=OPSET,
            verbose=False,
        )
    _strip(program)
    return program


def _strip(program: Any) -> None:
    """Leave out where in which file each part came from, and the sizes of what is on the way.

    The sizes are in part those of the example, behind recurrent layers.
    """
    outputs = set(program.model.graph.outputs)
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()
        for value in node.outputs:
            value.metadata_props.clear()
    for node in program.model.graph:
        for value in node.outputs:
            if value not in outputs:
                value.shape = None


def _named(entry: TowerInput) -> list[str]:
    return [size for size in entry.shape if isinstance(size, str)]


def _example(entry: TowerInput) -> Tensor:
    sizes = {BATCH: _EXAMPLE_BATCH}
    shape = [s if isinstance(s, int) else sizes.get(s, _EXAMPLE_LENGTH) for s in entry.shape]
    return torch.zeros(shape, dtype=getattr(torch, entry.dtype))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what the exporter says about libraries and steps of its own."""
    loggers = [logging.getLogger(name) for name in _MAKERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _write_rows(path: Path, column: str, ids: Vocabulary, num_rows: int) -> Path:
    """Write the row of each id that the tower has a vector of its own for."""
    table = pa.table(
        {column: ids.ids.slice(0, num_rows), "row": pa.array(range(num_rows), "int64")}
    )
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)
    return path
