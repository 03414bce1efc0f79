"""Columns whose types Arrow can store but hardly compute with, as types that it can."""

from collections.abc import Callable

import pyarrow as pa

from recsys.foundations import DataError


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Give the type that stands for another: text for views of text, at any depth."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    for is_kind, plain in _PLAIN.items():
        if is_kind(kind):
            return plain
    if types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(place)) for place in range(kind.num_fields)])
    return kind


_PLAIN: dict[Callable[[pa.DataType], bool], pa.DataType] = {
    pa.types.is_string_view: pa.large_string(),
    pa.types.is_binary_view: pa.large_binary(),
}


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema that `plain_table` gives."""
    return pa.schema([_plain_field(field) for field in schema])


def plain_table(table: pa.Table, *, name: str) -> pa.Table:
    """Give the columns in plain types; those that have them already are not copied.

    Args:
        table: As read or given.
        name: Of the file, for the error.

    Raises:
        DataError: A column has a type that cannot be brought to a plain one.
    """
    for place, field in enumerate(table.schema):
        kind = plain_type(field.type)
        if kind == field.type:
            continue
        column = table.column(place)
        if isinstance(field.type, pa.BaseExtensionType):
            chunks = [chunk.storage for chunk in column.chunks]
            column = pa.chunked_array(chunks, field.type.storage_type)
        try:
            table = table.set_column(place, field.with_type(kind), column.cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"{name}: the column {field.name!r} is of type {field.type}, which cannot be read."
            ) from error
    return table
