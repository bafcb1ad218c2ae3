"""A process that seals and prunes an audit log once, and can be killed at a failpoint.

`python -m tests.app.operations.mortal_sealer URL FOLDER DAYS`: `FOLDER` has the key and the blobs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.operations import seal_repository
from app.operations.audit_seals import Sealer
from app.platform import audit_keys
from app.platform.blobs import FolderStore
from app.platform.database import Database


def main(url: str, folder: Path, seconds: float) -> None:
    """Seal, record the head, and remove entries that are older than so many seconds."""
    db, keys = Database(url), audit_keys.read_keys(folder / audit_keys.FILE)
    sealer = Sealer(db, FolderStore(folder / "blobs"), keys)
    sealer.seal()
    sealer.record_head()
    while db.writing(seal_repository.prune, keys, seconds):
        pass


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
