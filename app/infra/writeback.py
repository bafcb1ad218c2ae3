"""Files that are written for long and must be on disk in the end: the system begins to write them out at once.

Else it gathers up to a tenth of the memory first, and the fsync in the end waits for the disk to take it all.
"""

from __future__ import annotations

import os


class Writeback:
    """Hands a growing file over to the disk, a part at a time."""

    _PART = 8 << 20

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sent = 0

    def grown_to(self, size: int) -> None:
        """Take note of the size so far; waits for nothing. What the system was not given yet is left to the fsync."""
        if size - self._sent < self._PART:
            return
        if hasattr(os, "posix_fadvise"):
            # Linux begins to write what of these pages is not written yet, and keeps those in memory.
            advice = os.POSIX_FADV_DONTNEED
            os.posix_fadvise(self._descriptor, self._sent, size - self._sent, advice)
        self._sent = size
