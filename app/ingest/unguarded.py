"""Tables that are read where no limit of memory holds, in the API's own process: what they claim is looked up first.

A few bytes of Parquet or Arrow can stand for any amount of memory. Arrow's messages say how much before they are
decoded; a page of Parquet alone says how large it becomes, so Parquet is for workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.ingest.formats import ARROW, ARROW_FILE, PARQUET
from app.platform.errors import UnsupportedMedia

_CELL_BYTES = 8
_STREAM = "stream"


def bounded(
    upload: Path,
    content_type: str,
    content_encoding: str | None,
    limits: Mapping[str, int],
    most_bytes: int,
    workdir: Path,
) -> dict[str, Any]:
    """Return what the reader is to know of a small upload that takes at most so many bytes decompressed, and as numbers
    where rows may have no bytes. Raises UnsupportedMedia for Parquet, and BadTable for what is larger.
    """
    from app.ingest.arrow import ArrowTable
    from app.ingest.csv import Upload
    from app.ingest.messages import read_claims, stream_of
    from app.ingest.stream import plain_bytes, too_long

    if content_type == PARQUET:
        raise UnsupportedMedia(
            f"{PARQUET} is read by a worker alone, and cannot be checked without being kept: "
            "leave validate out"
        )
    if content_type in (ARROW, ARROW_FILE):
        plain = plain_bytes(upload.read_bytes(), content_encoding, most_bytes)
        stream = plain if content_type == ARROW else stream_of(plain)
        claims = read_claims(stream)
        columns = ArrowTable(Upload(stream, None, most_bytes), limits["columns"]).names
        cells = max(claims.values, claims.rows * len(columns))
        if max(claims.bytes, cells * _CELL_BYTES) > most_bytes:
            raise too_long(most_bytes)
        upload, content_type, content_encoding = workdir / _STREAM, ARROW, None
        upload.write_bytes(stream)
    return {
        "path": str(upload),
        "content_type": content_type,
        "content_encoding": content_encoding,
        "limits": {**limits, "bytes": most_bytes},
    }
