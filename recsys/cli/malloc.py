"""What the C library does with memory that a stage has freed."""

import ctypes
import os
import platform

VARIABLE = "RECSYS_MALLOC"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_KEPT_BYTES = 1 << 30
_LARGEST_CHUNK_BYTES = 32 << 20  # the most that glibc allows: what is larger goes back at once
_THEIR_OWN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "LD_PRELOAD")


def keep_freed_memory() -> bool:
    """Have glibc reuse freed memory, up to 1 GiB in chunks up to 32 MiB, for the whole process.

    As it comes, glibc gives large chunks back to the system and takes them anew, and every fresh
    page costs a fault: steps that make large temporaries spend a tenth of their time so.

    Returns:
        Whether it was done: not with ``RECSYS_MALLOC=system`` in the environment, nor with
        settings of malloc or another malloc there, nor with another C library.

    Raises:
        ConfigError: The variable is neither `keep` nor `system`.
    """
    choice = os.environ.get(VARIABLE, "keep")
    if choice not in ("keep", "system"):
        from recsys.foundations import ConfigError  # which loads torch

        raise ConfigError(f"{VARIABLE} in the environment must be keep or system, got {choice!r}.")
    chosen = any(name in os.environ for name in _THEIR_OWN)
    chosen |= "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if choice == "system" or chosen or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    done = [
        mallopt(_MMAP_THRESHOLD, _LARGEST_CHUNK_BYTES),
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES),
    ]
    return all(done)
