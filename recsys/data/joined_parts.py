"""Training and validation as one part, for a model that is trained again once all is chosen."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.events import Events
from recsys.data.mapped_arrays import row_blocks
from recsys.data.ranges_of_parts import EVENTS_AT_ONCE, RangesOfParts
from recsys.foundations import DataError


def check_joins(dataset: PreparedDataset) -> None:
    """Check that the validation part has something to add to the training part.

    Raises:
        DataError: The validation part holds no event of a candidate.
    """
    if len(dataset.validation) == 0:
        raise DataError(
            f"trainer.refit=true trains on the validation part too, and that of {dataset.path} is "
            "empty: take a split with a validation part, or trainer.refit=false."
        )
    if len(_added(dataset)) == 0:
        raise DataError(
            f"trainer.refit=true trains on the validation part too, and that of {dataset.path} "
            "holds none of training's items: take another split, or trainer.refit=false."
        )


def join_validation(dataset: PreparedDataset) -> PreparedDataset:
    """Put the validation part into the training part, for a model to be trained on.

    Users and items keep their rows, and `num_users` and `num_items` stay: new users have rows at or
    above `num_users`, so that they train histories, and with ids what all unknown users share.
    Events of items that are no candidates go, for the model has no rows for them.

    Args:
        dataset: As it was prepared; the input of held-out validation users joins, too.

    Returns:
        The same data set with an empty validation part. In the training part events stand by user,
        then by time, and among events of one time those of training first.

    Raises:
        DataError: As `check_joins`.
    """
    check_joins(dataset)
    return replace(
        count_validation(dataset),
        train=_join(dataset.train, _added(dataset)),
        validation=dataset.validation.take(np.zeros(0, np.int64)),
        validation_input=None,
    )


def count_validation(dataset: PreparedDataset) -> PreparedDataset:
    """Count as training events what `join_validation` adds to them; leave the parts as they are.

    So a data set says what a model knows that was trained on both: how popular items are, and which
    are cold.
    """
    added = _added(dataset)
    return replace(
        dataset,
        users=_count_more(dataset.users, added.users),
        items=_count_more(dataset.items, added.items),
    )


def _added(dataset: PreparedDataset) -> Events:
    """Give the validation events of candidates, and what was known of held-out users before."""
    events = dataset.validation
    if dataset.validation_input is not None:
        events = _join(dataset.validation_input, events)
    return events.take(np.flatnonzero(events.items < dataset.num_items))


def _count_more(entities: Entities, rows: NDArray[np.integer]) -> Entities:
    return replace(entities, counts=entities.counts + np.bincount(rows, minlength=len(entities)))


def _join(first: Events, second: Events) -> Events:
    order = _order(first, second)
    times, weights = None, None
    if first.timestamps is not None and second.timestamps is not None:
        times = _pick(first.timestamps, second.timestamps, order)
    if first.weights is not None or second.weights is not None:
        weights = _pick(_weights_of(first), _weights_of(second), order)
    return Events(
        _pick(first.users, second.users, order),
        _pick(first.items, second.items, order),
        times,
        weights,
        first.context.followed_by(second.context).take(order),
    )


def _order(first: Events, second: Events) -> NDArray[np.integer]:
    """Give the places of the joined events in the first part with the second behind it: [N].

    By user, then by time where both parts have times, then by place; found in blocks of users.
    """
    num_events, parts = len(first) + len(second), (first, second)
    stamps = [part.timestamps for part in parts if part.timestamps is not None]
    num_users = max(len(part.offsets_of()) - 1 for part in parts)
    ranges = RangesOfParts.of(parts, num_users)
    order: NDArray[np.integer] = np.empty(num_events, np.int32 if num_events < 2**31 else np.int64)
    filled = 0
    for block in ranges.blocks(EVENTS_AT_ONCE):
        (owners, rows), (others, other_rows) = ranges.places(block)
        keys = [np.concatenate([owners, others])]
        if len(stamps) == len(parts):
            keys.insert(0, np.concatenate([stamps[0][rows], stamps[1][other_rows]]))
        places = np.concatenate([rows, other_rows + len(first)])
        order[filled : filled + len(places)] = places[np.lexsort(keys)]
        filled += len(places)
    return order


def _pick(first: NDArray[Any], second: NDArray[Any], order: NDArray[np.integer]) -> NDArray[Any]:
    """Take values of two columns, of which the second stands behind the first."""
    picked = np.empty(len(order), np.result_type(first, second))
    for rows in row_blocks(len(order)):
        places = order[rows]
        later = places >= len(first)
        block = picked[rows]  # a view
        block[~later] = first[places[~later]]
        block[later] = second[places[later] - len(first)]
    return picked


def _weights_of(part: Events) -> NDArray[np.float32]:
    return np.ones(len(part), np.float32) if part.weights is None else part.weights
