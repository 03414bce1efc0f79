"""The bridge from settings to lookups: the users, items and histories that are asked about."""

import logging
from pathlib import Path

import pyarrow as pa

from recsys.bundle import Bundle
from recsys.config.build_dataset import build_columns, build_format, required_columns
from recsys.config.schema_export import ExportConfig
from recsys.config.schema_stages import ExplainConfig, NeighboursConfig, RecommendConfig
from recsys.data import read_entities, read_interactions
from recsys.export import ExportRequest
from recsys.foundations import MissingFileError
from recsys.serving import UserRequest

log = logging.getLogger(__name__)


def build_user_request(
    config: RecommendConfig, bundle: Bundle
) -> tuple[pa.ChunkedArray | None, UserRequest]:
    """Give the ids of the users asked about (None: all) and what is asked for them.

    Columns of a users file that are features of the model stand in place of the stored ones,
    columns of its context are the context; other columns are not read.
    """
    form, columns = build_format(config.file), build_columns(config.columns)
    users, features, context = None, None, None
    if config.users != "all":
        name = config.columns.user_table_id or columns.user
        try:
            users = read_entities(config.users, format=form, id_column=name, what="user").table
        except MissingFileError as error:
            raise MissingFileError(f"users must be all or a file of user ids; {error}") from error
        _warn_of_others(users, bundle)
        features = _columns(users, bundle.users.features.schema.names)
        context = _columns(users, bundle.context_schema.names)
    histories = None
    if config.histories is not None:
        histories = read_interactions(
            config.histories,
            format=form,
            columns=columns,
            required=required_columns(columns, config.timestamp_unit),
            timestamp_unit=config.timestamp_unit,
            timezone=config.timezone,
            on_bad_rows=config.on_bad_rows,
        )
    request = UserRequest(
        k=config.k,
        exclude_seen=config.exclude_seen,
        exact=config.exact,
        popularity_alpha=config.popularity_alpha,
        histories=histories,
        features=features,
        context=context,
        where=config.where,
    )
    return None if users is None else users["id"], request


def _warn_of_others(users: pa.Table, bundle: Bundle) -> None:
    read = {*bundle.users.features.schema.names, *bundle.context_schema.names, "id"}
    others = [name for name in users.column_names if name not in read]
    if others:
        log.warning("columns of the users file that the model does not read: %s", ", ".join(others))


def _columns(users: pa.Table, names: tuple[str, ...]) -> pa.Table | None:
    """Give the ids and those of the columns that the table has; None if it has none of them."""
    there = [name for name in names if name in users.column_names]
    if not there:
        return None
    return users.select(["id", *there]).rename_columns(["user_id", *there])


def build_explained_items(config: ExplainConfig) -> list[str] | None:
    """Give the id of the item asked about; None: those that would be recommended."""
    return None if config.item is None else [config.item]


def build_item_ids(config: NeighboursConfig) -> list[str] | pa.ChunkedArray | None:
    """Give the ids of the items asked about: all (None), those of a file, or the one named."""
    if config.items == "all":
        return None
    if not Path(config.items).is_file():
        return [config.items]
    form, columns = build_format(config.file), build_columns(config.columns)
    name = config.columns.item_table_id or columns.item
    table: pa.Table = read_entities(config.items, format=form, id_column=name, what="item").table
    return table["id"]


def build_export_request(config: ExportConfig) -> ExportRequest:
    """Give what is exported, and as what."""
    return ExportRequest(
        form=config.form,
        name=config.name,
        columns=None if config.columns is None else tuple(config.columns),
        users=config.users,
        file_mb=config.file_mb,
    )
