"""The forms of an export by name; a new one is a function and a line here."""

from collections.abc import Callable, Mapping
from pathlib import Path

from recsys.export.exported_items import ExportedItems
from recsys.export.milvus import write_milvus
from recsys.export.opensearch import write_opensearch
from recsys.export.parquet import write_parquet
from recsys.export.qdrant import write_qdrant
from recsys.export.request import ExportRequest

WriteForm = Callable[[ExportedItems, ExportRequest, Path], None]

# Each writes into a folder of its own, which exists.
FORMS: Mapping[str, WriteForm] = {
    "parquet": write_parquet,
    "qdrant": write_qdrant,
    "milvus": write_milvus,
    "opensearch": write_opensearch,
}


def forms_of(form: str) -> list[str]:
    """Give the names of the forms that are asked for: one, or all of them."""
    return list(FORMS) if form == "all" else [form]
