"""Detection of an upload's format from its bytes, which take precedence over the file name and the declared type."""

from __future__ import annotations

import re
from pathlib import Path

from app.ingest import archives
from app.ingest.errors import BadTable
from app.ingest.formats import (
    ARROW,
    ARROW_FILE,
    CSV,
    JSON_ARRAY,
    NDJSON,
    PARQUET,
    XLSX,
    ZIP_ARCHIVE,
)

_HEAD_BYTES = 4096
_TAIL_BYTES = 1 << 20
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_BINARY = (PARQUET, ARROW, ARROW_FILE, XLSX)
_MAGIC = {b"PAR1": PARQUET, b"ARROW1\0\0": ARROW_FILE, b"\xff\xff\xff\xff": ARROW}
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?:[{\]]|$)")
_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*["}]')
_GENERIC = frozenset({"", "application/octet-stream", "text/plain", "application/vnd.ms-excel"})
"""What senders say of any file, and browsers on some machines of a CSV."""
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1f]")


def find_format(path: Path, said: str, encoding: str | None) -> tuple[str, str | None]:
    """Return the detected content type and encoding; what the bytes do not determine is as declared (`said`,
    `encoding`).

    Damaged bytes are left to the reader of the declared format, which reports the damage.
    """
    from app.ingest.stream import Stream, find_compression  # pyarrow, which an API imports later

    try:
        packed = find_compression(path, encoding)
        if packed == archives.ZIP:
            with path.open("rb") as file, archives.open_archive(file) as archive:
                if archives.is_office(archive):
                    return XLSX, None
        with Stream(path, encoding, _HEAD_BYTES) as stream:
            head = stream.read(_HEAD_BYTES)
    except BadTable:
        return said, encoding
    if packed == archives.ZIP:
        return _type_of(head, "" if said == ZIP_ARCHIVE else said) or said, archives.ZIP
    return _type_of(head, said), encoding


def find_foreign(path: Path) -> str | None:
    """Return the error for an encrypted or old workbook of Office; None for other files."""
    with path.open("rb") as file:
        head = file.read(_TAIL_BYTES)
        if not head.startswith(_COMPOUND):
            return None
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
    if _ENCRYPTED in head or _ENCRYPTED in tail:
        return (
            "the workbook is protected with a password, and only unprotected ones are read; save it without a "
            "password, as .xlsx"
        )
    return "the file has an old format of Office (.xls, .doc), and only .xlsx is read; save it as .xlsx or CSV"


def _type_of(head: bytes, said: str) -> str:
    if head.startswith(archives.MAGIC):
        return XLSX
    if found := next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None):
        return found
    if _ARRAY.match(head):
        return JSON_ARRAY
    if _OBJECT.match(head):
        return NDJSON
    is_open = said in _GENERIC or said in _BINARY
    return CSV if is_open and not _NO_TEXT.search(head) else said
