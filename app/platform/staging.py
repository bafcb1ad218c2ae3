"""Files on their way from a job's work folder into the blob store."""

from __future__ import annotations

import os
from pathlib import Path

from app.platform.blobs import BlobStore


def publish(blobs: BlobStore, file: Path, kind: str, sha256: str) -> str:
    """Move a finished file into the store and return its key; called again, find it there already.

    The transaction that names the blob may have to be tried again when the database was away.
    """
    key = f"{kind}/{sha256[:2]}/{sha256}"
    if not file.exists() and blobs.path(key).exists():
        os.utime(blobs.path(key))  # its grace begins anew, as if it had been published now
        return key
    return blobs.adopt(file, kind, sha256)
