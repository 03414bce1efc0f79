"""Towers, vocabularies, vectors and index as one verified folder."""

from recsys.bundle.bundle import Bundle
from recsys.bundle.read import read_bundle
from recsys.bundle.write import replace_index, write_bundle

__all__ = ["Bundle", "read_bundle", "replace_index", "write_bundle"]
