"""Arrays in `.npy` files, mapped and never unpickled."""

import tokenize
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations.errors import FormatError

_DAMAGE = (ValueError, EOFError, OverflowError, SyntaxError, tokenize.TokenError)  # of the header


def map_npy(path: Path) -> NDArray[Any]:
    """Map a `.npy` file; the array can be read alone.

    Raises:
        FormatError: It cannot be mapped, or is no whole `.npy` file.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:  # also where memory or descriptors are short: the file may be whole
        raise FormatError(f"{path} cannot be mapped: {error.strerror or error}.") from error
    except _DAMAGE as error:
        raise FormatError(f"{path} is damaged: not a whole .npy file.") from error
    if not isinstance(array, np.memmap):  # an archive of arrays
        raise FormatError(f"{path} is damaged: not a whole .npy file.")
    return array
