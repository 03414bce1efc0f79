"""The most memory that the tensors of a computation hold at once, on any device."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_bytes(job: Callable[[], object]) -> int:
    """Run a job and give the peak of what its tensors hold, in bytes.

    Counted is what operators return, forward and backward, while it lives; not the scratch space
    inside one operator, and not what was there before. The same on every machine.
    """
    ledger = _Ledger()
    with ledger:
        job()
    return ledger.peak


class _Ledger(TorchDispatchMode):
    """Keeps account of the storages that operators make."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak: int = 0
        self._held: int = 0
        self._storages: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {id(storage) for storage in _storages_of((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for storage in _storages_of(result):
            if id(storage) not in given and id(storage) not in self._storages:
                self._add(storage)
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = id(storage), storage.nbytes()

        def release(_: object) -> None:
            del self._storages[key]
            self._held -= size

        self._storages[key] = weakref.ref(storage, release)
        self._held += size
        self.peak = max(self.peak, self._held)


def _storages_of(values: Any) -> list[torch.UntypedStorage]:
    dense = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
    return [tensor.untyped_storage() for tensor in dense if tensor.layout == torch.strided]
