"""A bundle in memory, to ask for items, neighbours and vectors."""

import os
from pathlib import Path

from recsys.bundle import read_bundle
from recsys.serving import Lookup


def load_bundle(path: str | os.PathLike[str], *, verify: bool = True) -> Lookup:
    """Load a bundle and check it.

    The result answers `.recommend(...)`, `.neighbours(...)`, `.embed_users(...)` and
    `.embed_items(...)` with Arrow tables, and `.explain(...)` with three; ``.to_pandas()`` makes
    them data frames.

    Args:
        path: The bundle's folder.
        verify: Whether every file's hash is compared; sizes always are.

    Raises:
        MissingFileError: There is no bundle.
        FormatError: A file is missing, damaged, or of another bundle; it is named.
    """
    return Lookup(read_bundle(Path(path).expanduser(), verify=verify))
