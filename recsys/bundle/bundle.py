"""A trained model with all that a lookup needs, in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data import Entities, FeatureSchema
from recsys.foundations import Ragged
from recsys.index import ChangedIndex, Changes, ExactSearch, MainIndex, Vectors
from recsys.models import TwoTower


@dataclass(frozen=True)
class Bundle:
    """What `read_bundle` gives; it needs no data set.

    Attributes:
        path: Its folder.
        manifest: As written.
        model: Both towers, on the CPU, in evaluation mode.
        users: Rows below `num_users` have training events.
        items: Rows below `num_items` are the candidates; the others have no vector.
        num_users: Users with training events.
        num_items: Candidates, withdrawn ones among them.
        num_model_items: Candidates that the model has a row for, the first ones; to those behind
            them, which an update added, it knows features alone.
        withdrawn: [w], int64, rising: candidates that are never given.
        context_schema: The columns of an interaction itself that the user tower reads.
        histories: One list for each row of `users`: item rows, oldest first, repeats included;
            the training and validation events, and the input part of users that were held out.
        history_times: As many lists, int64: when each item of the histories was met, in µs. None
            unless the clock is "time".
        item_vectors: [num_items, E], float32, mapped from disk. With changes no array, but what is
            read by rows and slices as one.
        index: The index over the item vectors.
        exclude_seen: Whether items of the history are left out of what is recommended, unless a
            caller says otherwise.
        clock: "time", "order" or "none": what the histories are ordered by.
    """

    path: Path
    manifest: dict[str, Any]
    model: TwoTower
    users: Entities
    items: Entities
    num_users: int
    num_items: int
    num_model_items: int
    withdrawn: NDArray[np.int64]
    context_schema: FeatureSchema
    histories: Ragged
    history_times: Ragged | None
    item_vectors: Vectors
    index: MainIndex | ChangedIndex
    exclude_seen: bool
    clock: str

    @property
    def bundle_id(self) -> str:
        """Give the hash of what is in it."""
        return str(self.manifest["bundle_id"])

    @property
    def config(self) -> dict[str, Any]:
        """Give the settings of the run that made it."""
        return dict(self.manifest["config"])

    @property
    def scores(self) -> dict[str, Any]:
        """Give the metrics it was written with."""
        return dict(self.manifest["scores"])

    @property
    def dataset_fingerprint(self) -> str:
        """Give the fingerprint of the data set it was trained on."""
        return str(self.manifest["dataset_fingerprint"])

    @property
    def exact(self) -> ExactSearch:
        """Give exact search over the item vectors."""
        return self.index.exact

    @property
    def main_index(self) -> MainIndex:
        """Give the index that was built, without what changed since."""
        return self.index.main if isinstance(self.index, ChangedIndex) else self.index

    @property
    def index_changes(self) -> Changes:
        """Give what changed since the index was built."""
        if isinstance(self.index, ChangedIndex):
            return self.index.changes
        return Changes.none(self.num_items, self.index.dim)

    @property
    def changes(self) -> dict[str, Any]:
        """Give what updates changed of the items that it was trained with; empty: nothing."""
        return dict(self.manifest.get("changes", {}))

    @property
    def live_rows(self) -> NDArray[np.int64]:
        """Give the candidates that are not withdrawn: int64, rising."""
        live = np.ones(self.num_items, np.bool_)
        live[self.withdrawn] = False
        return np.flatnonzero(live)

    @property
    def item_counts(self) -> NDArray[np.int64]:
        """Give the training events of each candidate: [num_items], int64."""
        return self.items.counts[: self.num_items]
