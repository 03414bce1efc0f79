"""Towers, vocabularies, vectors and index as one verified folder."""

from recsys.bundle.bundle import Bundle
from recsys.bundle.read import read_bundle
from recsys.bundle.replaceable import check_replaceable
from recsys.bundle.write import (
    NewParts,
    inherited_provenance,
    only_withdrawn,
    replace_index,
    write_bundle,
    write_version,
)

__all__ = [
    "Bundle",
    "NewParts",
    "check_replaceable",
    "inherited_provenance",
    "only_withdrawn",
    "read_bundle",
    "replace_index",
    "write_bundle",
    "write_version",
]
