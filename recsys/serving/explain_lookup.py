"""Why items have the scores that they have for a user.

Dimensions: I items, H distinct items of the history, V alterations of the query, W of an item,
M interests, D embedding width, E output width.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.evaluation import EvaluationQueries, bonus_of, embed_queries
from recsys.foundations import ArgumentError
from recsys.serving.altered_items import alter_items
from recsys.serving.altered_user import AlteredUser, alter_user
from recsys.serving.explanations import Explanations

Vectors = NDArray[np.float32]
Scores = NDArray[np.float64]
_Piece: TypeAlias = tuple[str, str, Scores]  # side, name, contribution to each item's score


class ExplainLookup:
    """Explains scores by asking the towers again, with one thing hidden at a time.

    Args:
        bundle: The bundle.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle, self._bonus = bundle, bonus_of(bundle.model)

    def explain(
        self, query: EvaluationQueries, rows: NDArray[np.int64], num_history: int | None
    ) -> Explanations:
        """Explain the scores of items; see `Lookup.explain`.

        Args:
            query: One.
            rows: [I], candidates, distinct.
            num_history: Items of the history named for each item; None: all.

        Raises:
            ArgumentError: ``num_history`` is below 0.
        """
        if num_history is not None and num_history < 0:
            raise ArgumentError(f"`num_history` must be at least 0, got {num_history}.")
        bundle = self._bundle
        vectors = np.array(bundle.item_vectors[rows])
        user = alter_user(bundle.model, query)
        queries = embed_queries(bundle.model, user.queries)
        queries = queries if queries.ndim == 3 else queries[:, None]  # [V, M, E]
        of_user = _scores(queries, vectors)  # [V, M, I]
        scores = of_user.max(axis=1)  # [V, I]
        dim = bundle.model.training_dim
        towers = _scores(queries[..., :dim], vectors[:, :dim]).max(axis=1)  # without a ridge part
        ids = bundle.items.vocabulary.ids_of(rows).cast(pa.string())
        bonus = self._bonus_of(query, rows)  # [I]
        one = queries.shape[1] == 1
        interests = np.where(one, 0, of_user[0].argmax(axis=0)).astype(np.int32)
        items = {
            "item_id": ids,
            "score": pa.array(_served(scores[0], bonus)),
            "interest": pa.array(interests, mask=np.full(len(rows), one)),
            "fallback": pa.array(np.repeat(query.nothing_known(), len(rows))),
        }
        added = {} if bundle.model.ridge is None else {"ridge": scores[0] - towers[0]}
        added |= {} if bonus is None else {"repeats": bonus}
        pieces = _user_pieces(user, towers, added)
        pieces += self._item_pieces(queries[0], rows, towers[0], added)
        return Explanations(
            pa.table(items),
            self._history(query, user, scores, rows, bonus=bonus, num_history=num_history),
            _piece_table(ids, pieces),
        )

    def _bonus_of(self, query: EvaluationQueries, rows: NDArray[np.int64]) -> Scores | None:
        """Give what is added for items that the user had: [I]; None without such a thing."""
        if self._bonus is None:
            return None
        own = self._bonus(query)
        added = dict(zip(own.rows.rows.tolist(), own.bonus.tolist(), strict=True))
        return np.array([added.get(row, 0.0) for row in rows.tolist()])

    def _item_pieces(
        self, query: Vectors, rows: NDArray[np.int64], scores: Scores, added: dict[str, Scores]
    ) -> list[_Piece]:
        """Explain the towers' scores by what is known of the items."""
        altered, dim = alter_items(self._bundle, rows), self._bundle.model.training_dim
        flat = altered.vectors.reshape(-1, altered.vectors.shape[2])
        others = _scores(query[None, :, :dim], flat[:, :dim])[0].max(axis=0)
        others = others.reshape(altered.vectors.shape[:2])  # [I, W]
        found = {piece: others[:, -2] - others[:, n] for n, piece in enumerate(altered.pieces)}
        if altered.biases is not None:
            found["bias"] = altered.biases.astype(np.float64)
        return _with_remainder("item", others[:, -1], found, scores, added)

    def _history(
        self,
        query: EvaluationQueries,
        user: AlteredUser,
        scores: Scores,
        rows: NDArray[np.int64],
        *,
        bonus: Scores | None,
        num_history: int | None,
    ) -> pa.Table:
        """Order the items of the history by their likeness to each item."""
        bundle = self._bundle
        met, counts = np.unique(query.histories.rows, return_counts=True)
        likeness = _cosines(self._without_bias(rows), self._without_bias(met))  # [I, H]
        contributions = np.zeros((len(rows), len(met)))
        read = np.searchsorted(met, user.history_rows)
        contributions[:, read] = (scores[0] - scores[1 : 1 + len(read)]).T
        if bonus is not None:  # an item's own events carry it
            contributions += bonus[:, None] * (rows[:, None] == met)
        order = np.argsort(-likeness, axis=1, kind="stable")[:, :num_history]
        owners, places = np.repeat(np.arange(len(rows)), order.shape[1]), order.reshape(-1)
        names = bundle.items.vocabulary.ids_of
        return pa.table(
            {
                "item_id": names(rows[owners]).cast(pa.string()),
                "history_item_id": names(met[places]).cast(pa.string()),
                "num_events": pa.array(counts[places].astype(np.int32)),
                "similarity": pa.array(likeness[owners, places].astype(np.float32)),
                "contribution": pa.array(contributions[owners, places].astype(np.float32)),
            }
        )

    def _without_bias(self, rows: NDArray[np.int64]) -> Vectors:
        vectors, place = np.asarray(self._bundle.item_vectors[rows]), self._bundle.model.bias_place
        return vectors if place is None else np.delete(vectors, place, axis=1)


def _user_pieces(user: AlteredUser, scores: Scores, added: dict[str, Scores]) -> list[_Piece]:
    """Explain the towers' scores [V, I] by what is known of the user."""
    first = 1 + len(user.history_rows)
    found = {piece: scores[0] - scores[first + n] for n, piece in enumerate(user.pieces)}
    return _with_remainder("user", scores[-1], found, scores[0], added)


def _with_remainder(
    side: str, base: Scores, pieces: dict[str, Scores], scores: Scores, added: dict[str, Scores]
) -> list[_Piece]:
    """Put the pieces of the towers' scores [I] together, and what is added to these."""
    total = base + np.sum([*pieces.values()], axis=0)
    whole = {"base": base, **pieces, **added, "remainder": scores - total}
    return [(side, name, values) for name, values in whole.items()]


def _piece_table(ids: pa.StringArray, pieces: Sequence[_Piece]) -> pa.Table:
    """Give the pieces of item after item."""
    values = np.stack([one for _, _, one in pieces], axis=1).astype(np.float32)  # [I, pieces]
    columns: dict[str, Any] = {
        "item_id": ids.take(pa.array(np.repeat(np.arange(len(ids)), len(pieces)))),
        "side": pa.array([side for side, _, _ in pieces] * len(ids), pa.string()),
        "piece": pa.array([name for _, name, _ in pieces] * len(ids), pa.string()),
        "contribution": pa.array(values.reshape(-1)),
    }
    return pa.table(columns)


def _served(scores: Scores, bonus: Scores | None) -> NDArray[np.float32]:
    """Give the scores as a search does: rounded before a bonus and after it."""
    rounded = scores.astype(np.float32)
    return rounded if bonus is None else (rounded + bonus).astype(np.float32)


def _scores(queries: Vectors, vectors: Vectors) -> Scores:
    """Give the score of each interest [V, M, E] and item [I, E]: [V, M, I]."""
    return np.asarray(queries.astype(np.float64) @ vectors.astype(np.float64).T)


def _cosines(first: Vectors, second: Vectors) -> Scores:
    """Give the cosine of each pair [I, D] and [H, D]: [I, H]; 0 for a vector of zeros."""
    units = []
    for vectors in (first.astype(np.float64), second.astype(np.float64)):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units.append(vectors / np.where(lengths > 0, lengths, 1))
    return np.asarray(units[0] @ units[1].T)
