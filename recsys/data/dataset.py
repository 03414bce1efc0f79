"""The prepared data set: what `prepare` writes and everything else reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class Entities:
    """All users or all items, in the order of their rows.

    Attributes:
        vocabulary: Ids.
        counts: [R], int64, training events.
        features: R rows.
        display: R rows as read, for people (the title first) and for filters, or None: columns of
            plain values, and of lists of them.
    """

    vocabulary: Vocabulary
    counts: NDArray[np.int64]
    features: FeatureTable
    display: pa.Table | None

    def __len__(self) -> int:
        return len(self.vocabulary)


@dataclass(frozen=True)
class PreparedDataset:
    """A prepared data set: users and items in memory, the events mapped from their files.

    Attributes:
        path: Its folder.
        manifest: As written.
        users: Rows below `num_users` have training events.
        items: Rows below `num_items` are the candidates; the others were only met in validation
            or test, cannot be recommended, and stay in the truth that recall divides by.
        num_users: Users with training events.
        num_items: Candidates.
        clock: "time", "order" or "none".
        train: The training part.
        validation: May be empty.
        test: May be empty.
        validation_input: What is known of held-out validation users, where the split holds users
            out; else None.
        test_input: Likewise for test.
        fingerprint: SHA-256 of what is in it, independent of where it lies.
        exclude_seen: Whether items that a user had already are left out of what is recommended.
    """

    path: Path
    manifest: dict[str, Any]
    users: Entities
    items: Entities
    num_users: int
    num_items: int
    clock: str
    train: Events
    validation: Events
    test: Events
    validation_input: Events | None
    test_input: Events | None
    fingerprint: str
    exclude_seen: bool

    @property
    def context_schema(self) -> FeatureSchema:
        """Give the features of an interaction's context."""
        return self.train.context.schema

    @property
    def summary(self) -> str:
        """Give the readable summary, in lines."""
        return "\n".join(self.manifest["summary"])
