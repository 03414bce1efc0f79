"""A recommender-system retrieval toolkit that gets the softmax right."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.api import TrainedRun, evaluate, load_bundle, train
    from recsys.foundations import RecsysError

__version__ = "0.1.0"
__all__ = ["RecsysError", "TrainedRun", "__version__", "evaluate", "load_bundle", "train"]

_HOMES = dict.fromkeys(("TrainedRun", "evaluate", "load_bundle", "train"), "recsys.api")
_HOMES["RecsysError"] = "recsys.foundations"


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562): importing recsys costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
