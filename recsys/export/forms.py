"""The forms of an export by name; a new one is a function and a line here."""

from collections.abc import Callable, Mapping
from pathlib import Path

from recsys.export.exported_items import ExportedItems
from recsys.export.milvus import write_milvus
from recsys.export.onnx_files import write_towers
from recsys.export.opensearch import write_opensearch
from recsys.export.parquet import write_parquet
from recsys.export.qdrant import write_qdrant
from recsys.export.request import ExportRequest

WriteForm = Callable[[ExportedItems, ExportRequest, Path], None]

# Each writes into a folder of its own, which exists.
_OF_ITEMS: Mapping[str, WriteForm] = {
    "parquet": write_parquet,
    "qdrant": write_qdrant,
    "milvus": write_milvus,
    "opensearch": write_opensearch,
}
FORMS: Mapping[str, WriteForm] = {**_OF_ITEMS, "onnx": write_towers}


def forms_of(form: str) -> list[str]:
    """Give the names of the forms that are asked for: one, or all that hold the items' vectors."""
    return list(_OF_ITEMS) if form == "all" else [form]
