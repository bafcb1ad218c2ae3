"""A deployment's own disk, which can be filled: a tmpfs, where this process may mount one (root on Linux)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 16 * 1024**3  # takes only as much memory as is used
LEFT = 64 * 1024
_CLONE_NEWNS = 0x00020000


def leave_mounts_behind() -> bool:
    """Mount in a namespace of our own: mounts are seen only by this process and its children, and end with them.

    Call it before there are threads. Returns False if that is not allowed.
    """
    if not sys.platform.startswith("linux") or ctypes.CDLL(None).unshare(_CLONE_NEWNS) != 0:
        return False
    if not _ran("mount", "--make-rprivate", "/"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        return _mount(folder, 1 << 20) and _ran("umount", folder)


class Disk:
    """A disk mounted over a folder that is made for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        if not _mount(str(folder), SIZE):
            raise OSError(f"no tmpfs could be mounted on {folder}")

    def fill(self) -> bool:
        """Fill the disk almost; return False if it grew meanwhile."""
        return self._resize(shutil.disk_usage(self._folder).used + LEFT)

    def make_room(self) -> bool:
        """Set the disk back to its size."""
        return self._resize(SIZE)

    def close(self) -> None:
        """Unmount the disk, with everything on it."""
        _ran("umount", "--lazy", str(self._folder))

    def _resize(self, size: int) -> bool:
        return _ran("mount", "-o", f"remount,size={size}", str(self._folder))


def _mount(folder: str, size: int) -> bool:
    return _ran("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", folder)


def _ran(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
