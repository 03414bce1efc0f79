"""The saved form of a ScaNN index: a folder `index.scann` of protocol buffers and `.npy` files."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import FormatError, MissingFileError, atomic_folder
from recsys.index.scann_index import ScannIndex
from recsys.index.scann_library import load_scann, quiet_stderr
from recsys.index.settings import IndexSettings

_CONFIG = "scann_config.pb"
_LIST = "scann_assets.pbtxt"  # ScaNN's list of files; paths in it could lead anywhere
_ASSETS = {
    "AH_CENTERS": "ah_codebook.pb",
    "PARTITIONER": "serialized_partitioner.pb",
    "TOKENIZATION_NPY": "datapoint_to_token.npy",
    "AH_DATASET_NPY": "hashed_dataset.npy",
    "BF16_DATASET_NPY": "bfloat16_dataset.npy",
}
SCANN_FILES = (_CONFIG, *_ASSETS.values())


def write_scann(folder: Path, index: ScannIndex) -> None:
    """Write ScaNN's part of an index, atomically; the vectors are written beside it."""
    with atomic_folder(folder) as temporary:
        try:
            index.searcher.serialize(str(temporary), True)
        except (RuntimeError, ValueError) as error:  # a full disk among others
            raise OSError(f"{folder} cannot be written: {error}") from error
        (temporary / _LIST).unlink()


def read_scann(folder: Path, vectors: NDArray[np.float32], settings: IndexSettings) -> ScannIndex:
    """Read an index that `write_scann` wrote; nothing in its files can run code.

    Args:
        folder: Where they lie; files of other names are not read.
        vectors: [C, D], those it was built from, in the same order.
        settings: Those it was built with.

    Raises:
        MissingExtraError: The package scann-core is not installed.
        MissingFileError: A file is missing.
        FormatError: One is damaged, or holds another count, width or metric than the vectors.
    """
    for name in SCANN_FILES:
        if not (folder / name).is_file():
            raise MissingFileError(f"{folder / name} does not exist.")
    library = load_scann()
    assets = "".join(
        f'assets {{ asset_type: {kind} asset_path: "{name}" }}\n' for kind, name in _ASSETS.items()
    )
    try:
        with quiet_stderr():
            searcher = library.ScannNumpy(str(folder), assets)
        searcher.set_num_threads(1)
        config = str(searcher.config())
        searcher.search(np.zeros(vectors.shape[1], np.float32), 1, 1, 1)  # refuses another width
    except (RuntimeError, ValueError, MemoryError) as error:
        raise FormatError(
            f"{folder} is damaged, or no ScaNN index of vectors of width {vectors.shape[1]}."
        ) from error
    if 'distance_measure: "DotProductDistance"' not in config.partition("partitioning")[0]:
        raise FormatError(f"{folder} ranks by another metric than the inner product.")
    if searcher.size() != len(vectors):
        raise FormatError(
            f"{folder} holds {searcher.size()} vectors, the item vectors are {len(vectors)}: they "
            "do not belong together."
        )
    return ScannIndex(vectors, searcher, settings)
