"""The one door to the package scann-core, and an index of it built from vectors.

Dimensions: C candidates, D embedding width.
"""

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import MissingExtraError, num_threads
from recsys.index.plan import IndexPlan

# Training weighs an error along a vector, which changes its scores, above one across it; 0.2 is the
# threshold that ScaNN's authors use for vectors of length 1.
_THRESHOLD = 0.2
_TRAINING_VECTORS = 100_000  # at most
_ONE_LINE = re.compile(rb"[IWE]\d{4} |WARNING: All log messages before absl::InitializeLog")
_PLAIN_SCALE = 20  # powers of two from length 1; beyond it squares could leave float32
_stderr = threading.Lock()


def check_scann() -> None:
    """Check that the package scann-core is there, without importing it.

    Raises:
        MissingExtraError: It is not installed.
    """
    if importlib.util.find_spec("scann") is None:
        raise MissingExtraError(
            "An index of kind scann needs scann-core: pip install 'recsys-retrieval[scann]'."
        )


def load_scann() -> Any:
    """Give the package's C++ module, imported when it is first asked for.

    Raises:
        MissingExtraError: It is not installed.
    """
    check_scann()
    return importlib.import_module("scann.scann_ops.py.scann_ops_pybind").scann_pybind


def build_searcher(vectors: NDArray[np.float32], plan: IndexPlan) -> Any:
    """Train a tree and codes on the vectors and fill them; the same vectors give the same bytes.

    Args:
        vectors: [C, D], float32, finite.
        plan: Of kind scann.

    Raises:
        MissingExtraError: The package is not installed.
    """
    load_scann()
    vectors = _at_plain_scale(vectors)
    ops = importlib.import_module("scann.scann_ops.py.scann_ops_pybind")
    types = importlib.import_module("scann").ReorderType
    lengths = np.sqrt(np.einsum("cd,cd->c", vectors, vectors))
    usual = float(np.sqrt(np.mean(np.square(lengths, dtype=np.float64)))) or 1.0
    builder = ops.builder(np.ascontiguousarray(vectors), 1, "dot_product")
    builder = builder.set_n_training_threads(num_threads())
    # the random start of the tree is not that of another process, the other one is
    builder = builder.tree(
        num_leaves=plan.num_lists,
        num_leaves_to_search=plan.num_probes,
        training_sample_size=_TRAINING_VECTORS,
        random_init=False,
    )
    builder = builder.score_ah(
        plan.dims_a_code,
        anisotropic_quantization_threshold=_THRESHOLD * usual,
        training_sample_size=_TRAINING_VECTORS,
    )
    with quiet_stderr():
        searcher = builder.reorder(1, quantize=types.BFLOAT16).build().searcher
    searcher.set_num_threads(1)  # searches run in the threads of Python
    return searcher


def _at_plain_scale(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring vectors of extreme length near length 1, by a power of two: the ranking stays."""
    power = int(np.frexp(np.abs(vectors).max(initial=0.0))[1])
    return vectors if abs(power) <= _PLAIN_SCALE else np.ldexp(vectors, -power)


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Drop the lines that ScaNN logs to the process's standard error; others follow at the end."""
    with _stderr, tempfile.TemporaryFile() as caught:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            caught.seek(0)
            for line in caught:
                if not _ONE_LINE.match(line):
                    os.write(2, line)
