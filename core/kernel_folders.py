"""Which folders hold compiled kernels, and the levels of processors. Without numba, so that any process can ask."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

FOLDERS = "RANKWRIGHT_KERNEL_CACHE"
CPU_LEVEL_NAMES = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")


def folders() -> list[Path]:
    """The folders of the cache, in the order in which they are asked.

    Those that RANKWRIGHT_KERNEL_CACHE names, with colons between them; else one beside the code, and one in the user's
    folder of caches, which takes new kernels where the code's is read-only.
    """
    if named := os.environ.get(FOLDERS):
        return [Path(folder) for folder in named.split(os.pathsep) if folder]
    beside = Path(importlib.util.cache_from_source(__file__)).parent / "kernels"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [beside, caches / "rankwright" / "kernels"]
