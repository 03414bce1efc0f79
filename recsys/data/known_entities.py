"""The items and the users of a data set, with their rows, counts and features."""

import contextlib
from collections.abc import Iterator, Mapping

from recsys.data.catalogue import Assignment, assign_items, assign_users, build_entities
from recsys.data.coded_log import CodedLog
from recsys.data.dataset import Entities
from recsys.data.feature_schema import FeatureOptions
from recsys.data.part_counts import PartCounts
from recsys.data.raw import RawEntities
from recsys.data.split_settings import TRAIN
from recsys.foundations import DataError

Options = Mapping[str, FeatureOptions]


def build_items(
    log: CodedLog, counts: PartCounts, raw: RawEntities | None, options: Options, seed: int
) -> tuple[Assignment, Entities]:
    """Give items their rows, and encode the features of their table.

    Args:
        log: After the filters.
        counts: Of the parts.
        raw: The table of items, or None.
        options: Column -> how to encode it.
        seed: Of the order of the rows.

    Raises:
        DataError: There is no table, or a column does not hold what its kind needs.
    """
    _check_table(raw, options, "item")
    trained = counts.items[TRAIN]
    ids = None if raw is None else raw.table["id"]
    rows = assign_items(
        log.item_ids, trained > 0, log.item_counts > 0, ids, has_features=bool(options), seed=seed
    )
    with naming_the_table("of items"):
        return rows, build_entities(rows, trained, raw, options)


def build_users(
    log: CodedLog, counts: PartCounts, raw: RawEntities | None, options: Options, seed: int
) -> tuple[Assignment, Entities]:
    """Give users their rows; the rest is as in `build_items`."""
    _check_table(raw, options, "user")
    trained = counts.users[TRAIN]
    ids = None if raw is None else raw.table["id"]
    rows = assign_users(
        log.user_ids, trained > 0, log.counts > 0, ids, has_features=bool(options), seed=seed
    )
    with naming_the_table("of users"):
        return rows, build_entities(rows, trained, raw, options)


@contextlib.contextmanager
def naming_the_table(which: str) -> Iterator[None]:
    """Say in a refusal of a feature column which table it is of."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{str(error).rstrip('.')}, in the table {which}.") from error


def _check_table(raw: RawEntities | None, options: Options, what: str) -> None:
    if raw is None and options:
        name = next(iter(options))
        raise DataError(f"The feature {name!r} is wanted, but no table of {what}s is given.")
