"""What a bundle keeps of an index, whether one that was built whole or one with changes.

Dimensions: C candidates, D embedding width.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recsys.index.hits import Index
from recsys.index.settings import IndexSettings


class Vectors(Protocol):
    """Candidate vectors [C, D], float32: an array, or what is read as one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Give (C, D)."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Give float32."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...

    def __array__(self) -> NDArray[Any]: ...


class ExactSearch(Index, Protocol):
    """An index that scores every candidate."""

    @property
    def vectors(self) -> Vectors:
        """Give the candidates' vectors: [C, D], float32."""
        ...


class StoredIndex(Index, Protocol):
    """An index that a bundle keeps."""

    @property
    def settings(self) -> IndexSettings:
        """Give those it was built with."""
        ...

    @property
    def kind(self) -> str:
        """Give its kind, as in the settings, but neither auto nor factory."""
        ...

    @property
    def exact(self) -> ExactSearch:
        """Give the exact index over the same candidates."""
        ...

    @property
    def vectors(self) -> Vectors:
        """Give the candidates' vectors: [C, D], float32; those of withdrawn rows are among them."""
        ...
