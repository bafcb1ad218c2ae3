"""The key that `serve` makes for its first user."""

from __future__ import annotations

import os
from pathlib import Path

from app.db.session import Database
from app.services import audit, keys

OWNER = "default"


def first_key(db: Database, path: Path) -> str | None:
    """Make a key with every scope and keep it in a file for its user alone; None when there is a key already.

    Once a key exists the file is the user's: whoever deletes it for safety does not find a new one there.
    """
    if keys.list_page(db, OWNER, limit=1, after=None).data:
        return None
    with audit.by_command(OWNER, "rankwright serve"):
        _, secret = keys.create(db, OWNER, "first key", keys.SCOPES)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(secret + "\n")
    fresh.replace(path)
    return secret
