"""Errors, argument checks, seeding, atomic writes, threads, signals, progress, ragged lists."""

from recsys.foundations.checks import (
    check_choice,
    check_count,
    check_floats,
    check_integers,
    check_positive,
    check_shape,
)
from recsys.foundations.errors import (
    ArgumentError,
    ConfigError,
    DataError,
    FormatError,
    MissingExtraError,
    MissingFileError,
    RecsysError,
    ShapeError,
    TrackingError,
    TrainingError,
    UnknownIdError,
)
from recsys.foundations.files import (
    atomic_file,
    atomic_folder,
    canonical_json,
    check_files,
    list_files,
    read_json,
    sha256_file,
    sha256_text,
    write_json,
)
from recsys.foundations.in_threads import map_in_threads, one_blas_thread
from recsys.foundations.linear import has_fast_linear, linear
from recsys.foundations.machine_memory import available_memory
from recsys.foundations.membership import is_among, sorted_distinct
from recsys.foundations.npy import map_npy
from recsys.foundations.progress import Progress
from recsys.foundations.ragged import Ragged
from recsys.foundations.seeding import (
    derive_seed,
    make_generator,
    make_numpy_generator,
    seed_everything,
)
from recsys.foundations.signals import unwinding_on_signals
from recsys.foundations.temporary_folder import temporary_folder
from recsys.foundations.threads import available_cores, held_threads, set_threads, thread_bound
from recsys.foundations.torch_threads import (
    Ahead,
    map_in_torch_threads,
    num_threads,
    operator_threads,
)

__all__ = [
    "Ahead",
    "ArgumentError",
    "ConfigError",
    "DataError",
    "FormatError",
    "MissingExtraError",
    "MissingFileError",
    "Progress",
    "Ragged",
    "RecsysError",
    "ShapeError",
    "TrackingError",
    "TrainingError",
    "UnknownIdError",
    "atomic_file",
    "atomic_folder",
    "available_cores",
    "available_memory",
    "canonical_json",
    "check_choice",
    "check_count",
    "check_files",
    "check_floats",
    "check_integers",
    "check_positive",
    "check_shape",
    "derive_seed",
    "has_fast_linear",
    "held_threads",
    "is_among",
    "linear",
    "list_files",
    "make_generator",
    "make_numpy_generator",
    "map_in_threads",
    "map_in_torch_threads",
    "map_npy",
    "num_threads",
    "one_blas_thread",
    "operator_threads",
    "read_json",
    "seed_everything",
    "set_threads",
    "sha256_file",
    "sha256_text",
    "sorted_distinct",
    "temporary_folder",
    "thread_bound",
    "unwinding_on_signals",
    "write_json",
]
