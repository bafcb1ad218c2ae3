"""Rankers from the blob store."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from app.platform.errors import Unavailable

if TYPE_CHECKING:
    from core.base.ranker import Ranker


def load_ranker(path: Path) -> tuple[Ranker, int]:
    """Return the ranker in a blob, and the bytes of its artifact.

    Raises Unavailable if there is no such blob, or if its SHA-256 is not the name of its file.
    """
    from core import artifact

    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise Unavailable(
            f"the artifact {path.name} is not in the blob store", code="artifact_missing"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != path.name:
        raise Unavailable(
            f"the artifact {path.name} was changed in the blob store: its SHA-256 is {found}. Restore it "
            "from a backup",
            code="artifact_damaged",
        )
    return artifact.load(data), len(data)
