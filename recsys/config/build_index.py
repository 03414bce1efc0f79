"""The bridge from settings to an index: built as set, or tuned on the users of validation."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.config.schema_training import AutoIndexConfig, IndexConfig
from recsys.data import PreparedDataset
from recsys.evaluation import build_queries, embed_queries, print_tuning, write_tuning
from recsys.foundations import make_numpy_generator
from recsys.index import IndexSettings, MainIndex, Tuning, TuningTarget, build_main, tune_index
from recsys.models import TwoTower

_GRAPH_FROM = 50_000  # candidates from which a graph is worth its build again and again


@dataclass(frozen=True)
class BuiltIndex:
    """An index, and how it was chosen.

    Attributes:
        index: The index.
        tuning: What was measured; None where the settings name the index.
        files: The table and the picture of it.
    """

    index: MainIndex
    tuning: Tuning | None = None
    files: tuple[Path, ...] = ()

    @property
    def provenance(self) -> dict[str, Any]:
        """Say in a manifest how the index was chosen; empty where the settings name it."""
        if self.tuning is None:
            return {}
        found = self.tuning.to_json()
        chosen = next((one for one in found["trials"] if one["outcome"] == "chosen"), None)
        kept = {name: found[name] for name in ("target", "about", "num_queries")}
        return {"index_tuning": kept | {"chosen": chosen}}


def build_index(
    config: IndexConfig,
    vectors: NDArray[np.float32],
    ask: Callable[[int], NDArray[np.float32]],
    folder: Path,
    *,
    seed: int,
) -> BuiltIndex:
    """Build the index that is set; with index=auto the one that measures best.

    Args:
        config: The index group.
        vectors: [C, D], float32.
        ask: Gives query vectors to tune on, at most so many; is called with index=auto alone, and
            only for catalogues where there is a choice.
        folder: Where `index_tuning.json` and `index_tuning.png` go.
        seed: Of the choice of queries.
    """
    settings = build_index_settings(config)
    if settings.kind != "auto" or not isinstance(config, AutoIndexConfig):
        return BuiltIndex(build_main(vectors, settings))
    target = TuningTarget(**_those_of(TuningTarget, config))
    small = len(vectors) < target.exact_below
    queries = np.zeros((0, vectors.shape[1]), np.float32) if small else ask(target.num_queries)
    index, tuning = tune_index(vectors, queries, settings, target, seed=seed)
    print_tuning(tuning)
    return BuiltIndex(index, tuning, tuple(write_tuning(tuning, folder)))


def queries_of_validation(
    model: TwoTower, dataset: PreparedDataset, *, seed: int
) -> Callable[[int], NDArray[np.float32]]:
    """Give a function that embeds users of the validation part, at most so many, drawn by seed."""

    def ask(most: int) -> NDArray[np.float32]:
        queries = build_queries(dataset, "validation")
        rng = make_numpy_generator(seed, "queries of the index")
        return embed_queries(model, queries.take(rng.permutation(len(queries))[:most]))

    return ask


def build_index_settings(config: IndexConfig) -> IndexSettings:
    """Turn the index group into the settings of an index."""
    return IndexSettings(**_those_of(IndexSettings, config))


def settings_while_training(config: IndexConfig, num_candidates: int) -> IndexSettings:
    """Give the settings of an index that is built anew again and again, untuned.

    With index=auto exact search, from 50,000 candidates a graph.
    """
    settings = build_index_settings(config)
    if settings.kind != "auto":
        return settings
    return replace(settings, kind="flat" if num_candidates < _GRAPH_FROM else "hnsw")


def _those_of(kind: type, config: IndexConfig) -> dict[str, Any]:
    return {one.name: getattr(config, one.name) for one in fields(kind)}
