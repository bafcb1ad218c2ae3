"""What every table has in common, on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Float, LargeBinary, MetaData, Text
from sqlalchemy.orm import DeclarativeBase

Json = dict[str, Any]


class Base(DeclarativeBase):
    """Names every constraint, so that migrations can speak of them on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it once, at class creation
        float: Float(53),
        int: BigInteger,
        str: Text,  # no length that only one of the two databases would hold a value to
        # None is SQL's NULL here, never the JSON text `null`.
        Json: JSON(none_as_null=True),
        list[Json]: JSON(none_as_null=True),
        list[str]: JSON(none_as_null=True),
        bytes: LargeBinary,
    }
