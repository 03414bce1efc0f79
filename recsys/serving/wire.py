"""What goes over the wire: requests, checked to the last value, and replies.

Ids are JSON texts in both directions, so that none loses a digit on its way.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recsys.foundations import ArgumentError
from recsys.index import LARGEST_ALPHA
from recsys.serving.explanations import Explanations

Id = Annotated[str, Field(max_length=10_000)]
Value = str | int | float | bool | None | list[str | int | float]
Rows = dict[Id, dict[str, Value]]

_MOST_COMPLAINTS = 3


class _Request(BaseModel):
    """A request; a field that is unknown or of another type is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    k: int = Field(10, ge=1, description="Items for each query.")
    exact: bool = Field(False, description="Score every item and do not ask the index.")
    exclude: list[Id] | None = Field(None, description="Items that are not wanted.")
    allowed: list[Id] | None = Field(None, description="The only items wanted; null: all.")
    where: str | None = Field(
        None, max_length=4000, description="An expression over item columns that must hold."
    )


class RecommendRequest(_Request):
    """Items for users."""

    users: list[Id] = Field(min_length=1, description="User ids; unknown ones are welcome.")
    exclude_seen: bool | None = Field(None, description="null: as the data set was prepared.")
    popularity_alpha: float | None = Field(
        None,
        ge=-LARGEST_ALPHA,
        le=LARGEST_ALPHA,
        description="Above 0 less popular items rise; null: as the server was started.",
    )
    histories: dict[Id, list[Id]] | None = Field(
        None, description="By user, item ids, oldest first, in place of the stored history."
    )
    features: Rows | None = Field(None, description="By user, features in place of the stored.")
    context: Rows | None = Field(None, description="By user, context of the interaction.")


class NeighboursRequest(_Request):
    """Items like items."""

    items: list[Id] = Field(min_length=1, description="Item ids; an unknown one is refused.")


class ExplainRequest(BaseModel):
    """Why items have their scores for a user."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    user: Id = Field(description="A user id; an unknown one is welcome.")
    items: list[Id] | None = Field(
        None, min_length=1, description="Item ids; null: the k that would be recommended."
    )
    k: int = Field(3, ge=1, description="Items that are explained where none are named.")
    num_history: int = Field(
        10, ge=0, description="Items of the history named for each item, the most similar ones."
    )
    where: str | None = Field(
        None, max_length=4000, description="Must hold of the items that would be recommended."
    )
    history: list[Id] | None = Field(
        None, description="Item ids, oldest first, in place of the stored history."
    )
    features: dict[str, Value] | None = Field(None, description="In place of the stored ones.")
    context: dict[str, Value] | None = Field(None, description="Of the interaction.")


def parse(kind: type[BaseModel], body: bytes) -> Any:
    """Read a request.

    Raises:
        ArgumentError: It is not JSON or not such a request; at most three faults are named, and
            no value is repeated.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [_fault(fault["loc"], fault["msg"]) for fault in faults[:_MOST_COMPLAINTS]]
        more = len(faults) - len(texts)
        raise ArgumentError("; ".join(texts) + (f"; and {more} more." if more else ".")) from error


def _fault(place: Sequence[int | str], message: str) -> str:
    name = ".".join(str(part)[:100] for part in place)
    return f"`{name}`: {message}" if name else message


def check_limits(request: Any, queries: Sequence[str], *, max_k: int, max_batch: int) -> None:
    """Check what a server allows at once.

    Raises:
        ArgumentError: There are too many queries, or k is too large.
    """
    check_most("k", request.k, max_k)
    if len(queries) > max_batch:
        raise ArgumentError(f"At most {max_batch} queries go at once, got {len(queries)}.")


def check_most(name: str, value: int, most: int) -> None:
    """Check a number against what a server allows.

    Raises:
        ArgumentError: It is larger.
    """
    if value > most:
        raise ArgumentError(f"`{name}` must be at most {most}, got {value}.")


def check_users(request: RecommendRequest) -> None:
    """Check that whatever is said by user is said of users who are asked about.

    Raises:
        ArgumentError: A user of `histories`, `features` or `context` is not in `users`.
    """
    asked = set(request.users)
    for name in ("histories", "features", "context"):
        for user in getattr(request, name) or ():
            if user not in asked:
                raise ArgumentError(f"`{name}` holds the user {user[:100]!r}, not in `users`.")


def to_table(rows: Rows | None, name: str) -> pa.Table | None:
    """Make a table of `user_id` and columns out of values by user; an absent value is null.

    Raises:
        ArgumentError: Values of one column are of different types.
    """
    if rows is None:
        return None
    columns: dict[str, Any] = {"user_id": pa.array(list(rows), pa.large_string())}
    for column in dict.fromkeys(column for row in rows.values() for column in row):
        if column == "user_id":
            raise ArgumentError(f"`{name}` must not hold a column user_id: the key is the user.")
        try:
            columns[column] = pa.array([row.get(column) for row in rows.values()])
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ArgumentError(f"`{name}`: values of {column!r} do not fit together.") from error
    return pa.table(columns)


def item_replies(
    ids: Sequence[str], scores: Sequence[float], shown: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Give the items of one list, best first, with what people are shown of each.

    Args:
        ids: Item ids.
        scores: One for each.
        shown: By item id, the display columns.
    """
    return [
        {"item_id": one, "score": score, "columns": shown.get(one, {})}
        for one, score in zip(ids, scores, strict=True)
    ]


def explanation_replies(
    found: Explanations, shown: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Give the explanation of each item, with what people are shown of it and of the history.

    Args:
        found: The explanations.
        shown: By item id, the display columns.
    """
    replies: dict[str, dict[str, Any]] = {
        row["item_id"]: row
        | {"columns": shown.get(row["item_id"], {}), "history": [], "user": {}, "item": {}}
        for row in found.items.to_pylist()
    }
    for row in found.history.to_pylist():
        met = row["history_item_id"]
        facts = {name: row[name] for name in ("num_events", "similarity", "contribution")}
        one = {"item_id": met, **facts, "columns": shown.get(met, {})}
        replies[row["item_id"]]["history"].append(one)
    for row in found.pieces.to_pylist():
        replies[row["item_id"]][row["side"]][row["piece"]] = row["contribution"]
    return list(replies.values())


def display_columns(described: pa.Table) -> dict[str, dict[str, Any]]:
    """Give display columns by item id, with values that JSON has."""
    return {
        row["item_id"]: {name: _json(value) for name, value in row.items() if name != "item_id"}
        for row in described.to_pylist()
    }


def _json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_json(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
