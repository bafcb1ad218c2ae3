"""Files that are written for long and must be on disk in the end: the system begins to write them out at once.

Else it gathers up to a tenth of the memory first, and the fsync in the end waits for the disk to take it all.
"""

from __future__ import annotations

import os
import sys


class Writeback:
    """Hands a growing file over to the disk, a part at a time.

    The system keeps the first `most_cached` bytes in memory for who reads them soon. What comes behind them leaves the
    memory once it is on disk: a long file would push out what others use, and touch ever new pages, which is slow.
    """

    _PART = 8 << 20

    def __init__(self, descriptor: int, most_cached: int = sys.maxsize) -> None:
        self._descriptor = descriptor
        self._most_cached = most_cached
        self._sent = 0

    def grown_to(self, size: int) -> None:
        """Take note of the size so far; waits for nothing. What the system was not given yet is left to the fsync."""
        if size - self._sent < self._PART:
            return
        if hasattr(os, "posix_fadvise"):
            # Linux begins to write what of these pages is not written yet, keeps those, and drops the others: the
            # part that is new stays until it is named again together with the next.
            start = min(self._sent, self._most_cached)
            os.posix_fadvise(self._descriptor, start, size - start, os.POSIX_FADV_DONTNEED)
        self._sent = size
