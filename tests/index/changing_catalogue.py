"""A catalogue that changes at random, and what a search of it must give."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index import (
    ChangedIndex,
    Changes,
    ExactIndex,
    FaissIndex,
    Hits,
    IndexSettings,
    MainIndex,
    fold,
    withdrawal_alone,
)

OPERATIONS = ("add", "replace", "withdraw", "restore")


@dataclass(frozen=True)
class Asked:
    """Arguments of a search."""

    queries: NDArray[np.float32]
    k: int
    exclude: Ragged | None
    allowed: NDArray[np.int64] | Ragged | None


@dataclass
class ChangingCatalogue:
    """The plain truth, kept beside the index with changes.

    Attributes:
        vectors: [C, D], as they should be.
        rng: Chooses.
        main: The index as it was last built.
        withdrawn: Rows that must not be given.
        changed: Rows whose vector differs from the main index's, or that it lacks.
    """

    vectors: NDArray[np.float32]
    rng: np.random.Generator
    main: MainIndex
    withdrawn: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)

    @classmethod
    def make(cls, count: int, dim: int, settings: IndexSettings, seed: int) -> "ChangingCatalogue":
        """Build the index of a catalogue without changes."""
        rng = np.random.default_rng(seed)
        vectors = cls.draw(rng, count, dim)
        return cls(vectors, rng, FaissIndex.build(vectors, settings))

    @staticmethod
    def draw(rng: np.random.Generator, count: int, dim: int) -> NDArray[np.float32]:
        """Draw vectors of which a third has few values, so that scores are often equal."""
        drawn = rng.standard_normal((count, dim))
        few = rng.random(count) < 1 / 3
        drawn[few] = np.round(drawn[few])
        return drawn.astype(np.float32)

    @property
    def live(self) -> NDArray[np.int64]:
        """Give the rows that may be given, rising."""
        return np.setdiff1d(np.arange(len(self.vectors)), sorted(self.withdrawn))

    def index(self) -> ChangedIndex:
        """Give the index with changes."""
        rows = np.array(sorted(self.changed), np.int64)
        withdrawn = np.array(sorted(self.withdrawn), np.int64)
        return ChangedIndex(
            self.main, Changes(rows, self.vectors[rows], withdrawn, len(self.vectors))
        )

    def change(self, operation: str) -> None:
        """Add, replace, withdraw or restore a row."""
        vectors, one = self.vectors, self.draw(self.rng, 1, self.vectors.shape[1])
        if operation == "add":
            self.changed.add(len(vectors))
            self.vectors = np.concatenate([vectors, one])
        elif operation == "replace":
            row = int(self.rng.integers(len(vectors)))  # a withdrawn one too
            self.vectors = vectors.copy()
            self.vectors[row] = one
            self.changed.add(row)
        elif operation == "withdraw" and len(self.live):
            self.withdrawn.add(int(self.rng.choice(self.live)))
        elif operation == "restore" and self.withdrawn:
            self.withdrawn.remove(int(self.rng.choice(sorted(self.withdrawn))))

    def fold(self, *, retrain: bool) -> None:
        """Fold the changes into the main index."""
        index = self.index()
        left = withdrawal_alone(index.changes)
        self.main, self.changed = fold(index, retrain=retrain), set()
        assert left.withdrawn.tolist() == sorted(self.withdrawn)
        assert (len(left.rows), left.num_candidates) == (0, self.main.num_candidates)

    def ask(self, form: str, *, num_queries: int, k: int) -> Asked:
        """Make a search whose filters have one of the forms of `FORMS`."""
        rng, count, dim = self.rng, len(self.vectors), self.vectors.shape[1]
        shape = (num_queries, dim) if rng.random() < 2 / 3 else (num_queries, 3, dim)
        queries = rng.standard_normal(shape).astype(np.float32)
        exclude = allowed = None
        if "exclude" in form:
            lists = int(rng.integers(1, 40)) * num_queries
            exclude = self._lists(rng.integers(0, count + 3, lists), num_queries)
        if "rows" in form:
            share = rng.choice([0.01, 0.1, 0.5, 1.0])
            allowed = np.flatnonzero(rng.random(count + 3) < share)
        if "lists" in form:
            lists = int(rng.integers(0, 60)) * num_queries
            return Asked(
                queries, k, exclude, self._lists(rng.integers(0, count + 3, lists), num_queries)
            )
        return Asked(queries, k, exclude, allowed)

    def _lists(self, rows: NDArray[np.int64], num_lists: int) -> Ragged:
        return Ragged.from_pairs(self.rng.integers(0, num_lists, len(rows)), rows, num_lists)

    def rebuilt(self, settings: IndexSettings | None) -> "Rebuilt":
        """Build an index of the live rows alone; an exact one without settings."""
        live = self.live
        vectors = np.ascontiguousarray(self.vectors[live])
        index = ExactIndex(vectors) if settings is None else FaissIndex.build(vectors, settings)
        return Rebuilt(live, index)


@dataclass(frozen=True)
class Rebuilt:
    """An index of the live rows, which knows nothing of changes."""

    live: NDArray[np.int64]
    index: ExactIndex | FaissIndex

    def search(self, asked: Asked) -> Hits:
        """Search it, with filters and hits in the rows of the catalogue."""
        exclude = None if asked.exclude is None else self._places_of_lists(asked.exclude)
        allowed: Any = asked.allowed
        if isinstance(allowed, Ragged):
            allowed = self._places_of_lists(allowed)
        elif allowed is not None:
            allowed = np.flatnonzero(np.isin(self.live, allowed))
        hits = self.index.search(asked.queries, asked.k, exclude=exclude, allowed=allowed)
        return Hits(hits.offsets, self.live[hits.candidate_rows], hits.scores)

    def _places_of_lists(self, lists: Ragged) -> Ragged:
        places = [np.flatnonzero(np.isin(self.live, lists[number])) for number in range(len(lists))]
        offsets = np.cumsum([0, *(len(some) for some in places)])
        return Ragged(offsets, np.concatenate([np.zeros(0, np.int64), *places]))


FORMS = ("none", "exclude", "rows", "lists", "exclude and rows", "exclude and lists")


def search(index: Any, asked: Asked) -> Hits:
    """Search any index."""
    hits: Hits = index.search(asked.queries, asked.k, exclude=asked.exclude, allowed=asked.allowed)
    return hits


def assert_same(found: Hits, wanted: Hits) -> None:
    """Check that order and scores are equal."""
    assert found.offsets.tolist() == wanted.offsets.tolist()
    assert found.candidate_rows.tolist() == wanted.candidate_rows.tolist()
    assert found.scores.tolist() == wanted.scores.tolist()
