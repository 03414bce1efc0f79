"""Names of collections are refused by each engine's rule, names of fields are changed by it."""

import pytest

from recsys.export import check_name
from recsys.export.engine_names import (
    field_names,
    milvus_field,
    opensearch_field,
    parquet_field,
    qdrant_field,
)
from recsys.foundations import ArgumentError


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("qdrant", "a/b"),
        ("qdrant", ""),
        ("qdrant", ".."),
        ("qdrant", "my items"),
        ("qdrant", "x" * 256),
        ("milvus", "my-items"),
        ("milvus", "9items"),
        ("milvus", "größe"),
        ("opensearch", "Items"),
        ("opensearch", "_items"),
        ("opensearch", "a,b"),
        ("opensearch", "."),
        ("opensearch", "ü" * 128),
    ],
)
def test_a_name_that_an_engine_refuses(form: str, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"`name` must .* for form={form}"):
        check_name(form, name)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("qdrant", "Films-2024.1"),
        ("qdrant", "größe"),
        ("milvus", "_Films_2024"),
        ("opensearch", "films-2024.1"),
        ("parquet", "any / thing"),
    ],
)
def test_a_name_that_an_engine_takes(form: str, name: str) -> None:
    check_name(form, name)


def test_fields_of_milvus_are_words_of_ascii_and_none_of_its_own() -> None:
    changed = {"a b": "a_b", "2nd": "_2nd", "Größe": "Gr__e", "in": "_in", "ok_1": "ok_1"}
    changed |= {"Timestamp": "_Timestamp", "": "_", "json_contains_any": "_json_contains_any"}
    assert {name: milvus_field(name) for name in changed} == changed
    assert len(milvus_field("x" * 999)) < 255


def test_fields_of_opensearch_nest_nothing_and_are_none_of_its_own() -> None:
    changed = {"a.b": "a_b", "_source": "column_source", " x ": "x", "  ": "column", "Ä b": "Ä b"}
    assert {name: opensearch_field(name) for name in changed} == changed


def test_keys_of_qdrant_keep_all_but_quotes() -> None:
    changed = {"a.b": "a.b", 'a"b': "a_b", "": "_", "größe": "größe"}
    assert {name: qdrant_field(name) for name in changed} == changed


def test_columns_of_one_field_get_numbers() -> None:
    found = field_names(["a.b", "a b", "a_b_2", "id"], milvus_field, ["id"])
    assert found == {"a.b": "a_b", "a b": "a_b_2", "a_b_2": "a_b_2_2", "id": "id_2"}
    assert field_names(["a.b"], parquet_field, []) == {"a.b": "a.b"}
