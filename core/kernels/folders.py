"""Which folders hold compiled kernels, and the levels of processors. Without numba, so that any process can ask."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

FOLDERS = "RANKWRIGHT_KERNEL_CACHE"
CPU = "RANKWRIGHT_KERNEL_CPU"
STATE = "RANKWRIGHT_STATE_DIR"

# What a processor must have to run code for the level (the x86-64 psABI; LLVM's names of the features).
_V2 = ("cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3_ALONE = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V3 = (*_V2, *_V3_ALONE)
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_ZEN_2_ALONE = (
    *("adx", "aes", "clflushopt", "clwb", "clzero", "fsgsbase", "mwaitx", "pclmul", "prfchw"),
    *("rdpid", "rdpru", "rdrnd", "rdseed", "sha", "sse4a", "wbnoinvd", "xsavec", "xsaveopt"),
    "xsaves",
)


class CpuLevel(NamedTuple):
    """A level of processors: LLVM's model that it is compiled as, what is taken from that, what a processor needs."""

    machine: str
    model: str
    without: tuple[str, ...]
    needs: tuple[str, ...]


# LLVM's own names of levels 2 and 3 unroll loops little: trees score two to three times slower than by the model of a
# real processor. So these are compiled as Zen 2, which has all of them, without what Zen 2 has beyond.
CPU_LEVELS = {
    "x86-64-v2": CpuLevel("x86_64", "znver2", (*_ZEN_2_ALONE, *_V3_ALONE), _V2),
    "x86-64-v3": CpuLevel("x86_64", "znver2", _ZEN_2_ALONE, _V3),
    "x86-64-v4": CpuLevel("x86_64", "x86-64-v4", (), _V4),
    "aarch64": CpuLevel("aarch64", "generic", (), ()),
}


def levels_that_fit(levels: str, has: Callable[[str], bool] | None) -> list[str]:
    """Choose among levels those of this machine's family, and that it can run by what its processor `has`.

    ValueError: for a name that is none of the levels. Returns list of str: the levels, in the order in which they are
    named.

    Parameters
    ----------
    levels : str
        Names of `CPU_LEVELS` with commas between them.
    has : callable or None
        Whether the processor has the feature of this name, as LLVM calls it; None where that does not matter.
    """
    fitting = []
    for name in filter(None, (part.strip() for part in levels.split(","))):
        if name not in CPU_LEVELS:
            raise ValueError(f"{CPU} must be of {', '.join(CPU_LEVELS)}, got {name!r}")
        level = CPU_LEVELS[name]
        if level.machine == platform.machine() and (has is None or all(map(has, level.needs))):
            fitting.append(name)
    return fitting


def folders(state_dir: Path | None = None) -> list[Path]:
    """The folders of the cache, in the order in which they are asked.

    Those that RANKWRIGHT_KERNEL_CACHE names, with colons between them; else one beside the code, and one in the user's
    folder of caches, if the user has one. The last is in the state folder, if one is given or named by
    RANKWRIGHT_STATE_DIR: it takes new kernels where all the others are read-only.
    """
    if named := os.environ.get(FOLDERS):
        found = [Path(folder) for folder in named.split(os.pathsep) if folder]
    else:
        package = Path(__file__).parents[1] / "__init__.py"
        beside = Path(importlib.util.cache_from_source(package)).parent / "kernels"
        home = os.path.expanduser("~")  # unlike `Path.home`, no error for a user who has none
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
        found = [beside]
        if os.path.isabs(caches):
            found.append(Path(caches, "rankwright", "kernels"))
    # Never one of the current folder that nobody named: what lies there is machine code, and may be anybody's.
    state = state_dir or os.environ.get(STATE)
    if state and os.path.isdir(state):
        found.append(Path(state).absolute() / "kernels")
    return list(dict.fromkeys(found))


def notes(state_dir: Path | None = None) -> list[Path]:
    """What `workers.compile` left in the folders when it had compiled every kernel for some sources and processor."""
    return [note for folder in folders(state_dir) for note in folder.glob("complete.*")]


def writable_folder(state_dir: Path | None = None) -> Path | None:
    """The folder that will take new kernels; None if this user may write to no folder of the cache."""
    for folder in folders(state_dir):
        there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
        if os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK):
            return folder
    return None
