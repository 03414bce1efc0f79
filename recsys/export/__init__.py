"""A bundle's item vectors, ids and columns as other engines load them, and its towers."""

from recsys.export.engine_names import check_name
from recsys.export.forms import FORMS, forms_of
from recsys.export.onnx_files import write_onnx
from recsys.export.request import MOST_FILE_MB, ExportRequest
from recsys.export.write import check_replaceable, write_export

__all__ = [
    "FORMS",
    "MOST_FILE_MB",
    "ExportRequest",
    "check_name",
    "check_replaceable",
    "forms_of",
    "write_export",
    "write_onnx",
]
