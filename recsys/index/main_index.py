"""The index that is built over all vectors of a bundle, whatever library finds the candidates.

Dimensions: C candidates, D embedding width.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import write_json
from recsys.index.faiss_index import FaissIndex
from recsys.index.plan import plan_index
from recsys.index.saved import read_index, write_index
from recsys.index.scann_index import ScannIndex
from recsys.index.scann_saved import SCANN_FILES, read_scann, write_scann
from recsys.index.settings import IndexSettings

MainIndex = FaissIndex | ScannIndex
_SETTINGS, _FAISS, _SCANN = "index.json", "index.faiss", "index.scann"
INDEX_FORMS = ((_FAISS,), tuple(f"{_SCANN}/{name}" for name in SCANN_FILES))
"""The files beside `index.json` in each form; a bundle holds those of one."""


def build_main(vectors: NDArray[np.float32], settings: IndexSettings) -> MainIndex:
    """Build an index: of scann-core with kind scann, else of FAISS.

    Args:
        vectors: [C, D], float32, finite, at least one.
        settings: What to build; too few vectors for ScaNN make a flat index, with a warning.

    Raises:
        MissingExtraError: The kind is scann and scann-core is not installed.
        ConfigError: The settings are impossible for this width.
        ArgumentError: There are no vectors, or one is not finite.
    """
    if settings.kind == "scann" and len(vectors) and vectors.ndim == 2:
        count, dim = vectors.shape
        if plan_index(settings, num_candidates=count, dim=dim, quiet=True).kind == "scann":
            return ScannIndex.build(vectors, settings)
    return FaissIndex.build(vectors, settings)


def write_main(folder: Path, index: MainIndex) -> None:
    """Write an index and its settings into the folder of a bundle."""
    write_json(folder / _SETTINGS, index.settings.to_json())
    if isinstance(index, ScannIndex):
        write_scann(folder / _SCANN, index)
    else:
        write_index(folder / _FAISS, index)


def read_main(folder: Path, vectors: NDArray[np.float32], settings: IndexSettings) -> MainIndex:
    """Read the index of a bundle's folder.

    Args:
        folder: The bundle's.
        vectors: [C, D], those it was built from, in the same order.
        settings: Those it was built with.

    Raises:
        MissingExtraError: It needs scann-core, which is not installed.
        MissingFileError: A file is missing.
        FormatError: One is damaged, or holds another count, width or metric than the vectors.
    """
    if settings.kind == "scann" and not (folder / _FAISS).exists():
        return read_scann(folder / _SCANN, vectors, settings)
    return read_index(folder / _FAISS, vectors, settings)
