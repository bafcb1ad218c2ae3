"""The state folder, with permissions for this user only, because it contains the database and the first key."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class OpenToOthers(PermissionError):
    """Raised for a folder that other users may enter although they must not; the message names folder and mode."""


def make_private(folder: Path) -> None:
    """Create the folder with the mode 0700. An empty existing folder gets that mode.

    Raises
    ------
    OpenToOthers
        The folder is not empty, and other users may enter it: its files may be meant for them, or they have already
        read them.
    OSError
        The folder cannot be made, or does not belong to this user.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_open(folder):
        return
    if not any(folder.iterdir()):
        folder.chmod(0o700)
        if not _is_open(folder):
            return
    mode = stat.S_IMODE(folder.stat().st_mode)
    raise OpenToOthers(
        f"the state folder {folder} must have the mode 0700, got {mode:04o}, which lets other users "
        f"enter it. Run `chmod 700 {folder}`, or set RANKWRIGHT_STATE_DIR to another folder"
    )


def _is_open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & 0o077)


def make_secret(file: Path, secret: str) -> None:
    """Write a new secret to a file that only this user can read, unless the file exists."""
    if file.exists():
        return
    fresh = file.with_name(file.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(secret + "\n")
        opened.flush()
        os.fsync(descriptor)
    fresh.replace(file)
