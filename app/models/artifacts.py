"""The artifacts of trained models: their blobs, and loading of the ranker."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from app.platform.blobs import Blob, BlobDamaged

if TYPE_CHECKING:
    from app.platform.tables import Model
    from core.base.ranker import Ranker


ARTIFACTS = "artifacts"  # their kind in the blob store


def artifact_of(model: Model) -> Blob:
    return Blob(model.artifact_key, model.artifact_sha256, model.artifact_bytes)


def load_ranker(path: Path, sha256: str) -> tuple[Ranker, int]:
    """Return the ranker and the size of its file in bytes. Raises BlobDamaged if the SHA-256 is another one."""
    from core import artifact

    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise BlobDamaged(path.name, ARTIFACTS, f"SHA-256 {sha256}", f"SHA-256 {found}")
    return artifact.load(data), len(data)
