"""Training and validation as one part, for a model that is trained again once all is chosen."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recsys.data.dataset import Entities, PreparedDataset
from recsys.data.events import Events
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
    users = np.concatenate([first.users, second.users])
    stamps = [part.timestamps for part in (first, second) if part.timestamps is not None]
    timestamps = np.concatenate(stamps) if len(stamps) == 2 else None
    joined = Events(
        users,
        np.concatenate([first.items, second.items]),
        timestamps,
        _join_weights(first, second),
        first.context.followed_by(second.context),
    )
    return joined.take(np.lexsort([users] if timestamps is None else [timestamps, users]))


def _join_weights(first: Events, second: Events) -> NDArray[np.float32] | None:
    if first.weights is None and second.weights is None:
        return None
    return np.concatenate(
        [
            np.ones(len(part), np.float32) if part.weights is None else part.weights
            for part in (first, second)
        ]
    )
