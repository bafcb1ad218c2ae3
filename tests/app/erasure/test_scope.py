"""Every table and every kind of blob declares what an erasure does about it: a new one cannot be forgotten."""

from __future__ import annotations

from app.erasure.places import BLOBS, TABLES, Place
from app.operations.repository import blob_columns
from app.platform.sql import Base


def test_every_table_is_classified() -> None:
    assert {table.name for table in Base.metadata.sorted_tables} == TABLES.keys()


def test_every_kind_of_blob_is_classified() -> None:
    assert {column.what for column in blob_columns()} == BLOBS.keys()


def test_a_blob_is_found_where_its_row_is_or_itself() -> None:
    """No blob is in a table that an erasure does not know, and none is taken for words."""
    for what, place in BLOBS.items():
        assert place not in (Place.NONE, Place.WORDS), what


def test_what_goes_with_a_dataset_refers_to_it() -> None:
    """Rows are deleted with the dataset by the database itself."""
    for name in (name for name, place in TABLES.items() if place == Place.FOLLOWS):
        references = Base.metadata.tables[name].foreign_keys
        of_dataset = [each for each in references if each.column.table.name == "datasets"]
        assert [each.ondelete for each in of_dataset] == ["CASCADE"], name
