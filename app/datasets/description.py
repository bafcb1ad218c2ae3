"""Validation of a caller's description of a table: its fields, and the format of its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.datasets.fields import TableFields, VersionFields
from app.ingest.detection import find_foreign, find_format
from app.ingest.fields import find_unknown
from app.ingest.formats import (
    CONTENT_TYPES,
    CSV,
    ZIP_ARCHIVE,
    Dialect,
    check_length,
    encoding_of,
    find_clash,
    foreign_fields,
    header_of,
)
from app.platform.errors import Invalid, UnsupportedMedia, refuse_all
from app.platform.tables import DatasetKind

CONTENT_ENCODINGS = ("gzip", "zstd")


@dataclass(frozen=True)
class Format:
    """The format of an upload. `charset` and `header` (whether the first line has names; None: not stated) are a CSV's,
    from its Content-Type.
    """

    content_type: str
    content_encoding: str | None
    charset: str | None = None
    header: bool | None = None


def describe(given: Mapping[str, str], also: Sequence[str] = ()) -> TableFields:
    """Validate a description. Raises Invalid with every error. `also` are more fields that an error may suggest."""
    errors = find_unknown(given, (*TableFields.model_fields, *also))
    fields, wrong = TableFields.read(given)
    errors += wrong
    errors += [
        {"parameter": field, "detail": f"{field} cannot be combined with kind={fields.kind}: {why}"}
        for field, type_ in TableFields.types().items()
        if field in given and (why := type_.not_for.get(fields.kind)) is not None
    ]
    if fields.kind == DatasetKind.MULTILABEL and "labels" not in given:
        detail = (
            "labels must list the label columns of a multilabel table, for example labels=a,b,c"
        )
        errors.append({"parameter": "labels", "detail": detail})
    if "group" in given and "query" in given:
        detail = "group and query cannot be combined: rows of a query already stay together"
        errors.append({"parameter": "group", "detail": detail})
    if (clash := find_clash(fields.dialect or {})) is not None:
        errors.append({"parameter": "thousands", "detail": clash})
    roles = list(fields.columns())
    if len({name for _, name in roles}) < len(roles):
        named = ", ".join(f"{role}={column!r}" for role, column in roles[:20])
        errors.append(
            {
                "parameter": "label",
                "detail": f"each column can have only one role, got {named[:1000]}",
            }
        )
    taken = {column: role for role, column in roles if role not in ("categorical", "numeric")}
    errors += [
        {
            "parameter": "protected",
            "detail": f"a protected column must have no other role, got {column!r} as protected and as {taken[column]}",
        }
        for column in fields.protected or ()
        if column in taken
    ]
    if errors:
        raise Invalid(errors[0]["detail"], errors=errors)
    return fields


def describe_version(given: Mapping[str, str]) -> VersionFields:
    """Raises Invalid with every error."""
    why = "; a new version has the roles of its parent"
    errors = find_unknown(given, tuple(VersionFields.model_fields), why)
    fields, wrong = VersionFields.read(given)
    if errors or wrong:
        errors += wrong
        raise Invalid(errors[0]["detail"], errors=errors)
    return fields


def check_format(
    content_type: str,
    content_encoding: str | None,
    also: str = "a form",
    *,
    needs_header: bool = True,
) -> Format:
    """Read the format from headers. Raises UnsupportedMedia, with `needs_header` also for a CSV without names.

    `also` are more supported types, for the message.
    """
    check_length(content_type)
    media_type = content_type.partition(";")[0].strip().lower()
    charset = header = None
    if media_type == CSV:
        try:
            charset, header = encoding_of(content_type), header_of(content_type)
        except ValueError as error:
            raise UnsupportedMedia(f"the {error} in the Content-Type") from error
        if needs_header and header is False:
            raise UnsupportedMedia(
                "a CSV must begin with the names of its columns here, but its Content-Type says header=absent: only "
                "the routes that score the rows of a request read a CSV without names"
            )
    if media_type not in (*CONTENT_TYPES, ZIP_ARCHIVE):
        known = ", ".join((*CONTENT_TYPES, ZIP_ARCHIVE))
        got = repr(media_type[:100]) if media_type else "none"
        raise UnsupportedMedia(f"Content-Type must be one of {known}, or {also}; got {got}")
    return Format(media_type, check_encoding(content_encoding), charset, header)


def told_by_bytes(path: Path, stated: Format) -> Format:
    """Detect the actual format from the bytes. Raises UnsupportedMedia if none is detected."""
    if (foreign := find_foreign(path)) is not None:
        raise UnsupportedMedia(foreign)
    content_type, encoding = find_format(path, stated.content_type, stated.content_encoding)
    if content_type == ZIP_ARCHIVE:
        raise UnsupportedMedia(
            "the body must be a ZIP archive of exactly one table, as its Content-Type says"
        )
    if content_type not in CONTENT_TYPES:
        return check_format(content_type, encoding)  # which refuses it
    return replace(stated, content_type=content_type, content_encoding=encoding)


def check_encoding(content_encoding: str | None) -> str | None:
    """Raises UnsupportedMedia."""
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return None
    if encoding not in CONTENT_ENCODINGS:
        known = ", ".join(CONTENT_ENCODINGS)
        raise UnsupportedMedia(f"Content-Encoding must be one of {known}, got {encoding[:100]!r}")
    return encoding


def refuse_foreign(dialect: Mapping[str, str] | None, table: Format) -> None:
    """Raise Invalid for fields that tables of this format cannot have."""
    choices = Dialect.choices()
    refuse_all(
        [
            {
                "parameter": field,
                "detail": f"{field} can be set only for {' and '.join(choices[field].formats or ())}, got "
                f"{table.content_type}",
            }
            for field in foreign_fields(dialect or {}, table.content_type)
        ]
    )


def refuse_clash(dialect: Mapping[str, str]) -> None:
    """Raise Invalid if the thousands separator is also the decimal mark."""
    if (clash := find_clash(dialect)) is not None:
        raise Invalid(clash, errors=[{"parameter": "thousands", "detail": clash}])


def find_dialect(description: Dialect, table: Format) -> dict[str, str] | None:
    """Combine the fields and the Content-Type of a text table. Raises Invalid for fields that only a CSV has."""
    dialect = description.dialect
    refuse_foreign(dialect, table)
    if table.charset is not None:
        return {"encoding": table.charset, **(dialect or {})}
    return dialect
