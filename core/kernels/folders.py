"""The cache folders of compiled kernels, and processor levels; does not import numba, so any process can use it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

FOLDERS = "RANKWRIGHT_KERNEL_CACHE"
CPU = "RANKWRIGHT_KERNEL_CPU"
STATE = "RANKWRIGHT_STATE_DIR"
KEEP_SECONDS = 86400.0  # age at which files of other sources are removed: another checkout may share the folder
_LIST = "all."

# The features that a processor needs for each level (from the x86-64 psABI, with LLVM's names).
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
    """A processor level: LLVM's model name, features to disable, and features that the machine needs."""

    machine: str
    model: str
    without: tuple[str, ...]
    needs: tuple[str, ...]


# With LLVM's own models of levels 2 and 3 loops are unrolled little, and trees score two to three times slower than
# with the model of a real processor. So these are compiled for Zen 2, without the features that the level lacks.
CPU_LEVELS = {
    "x86-64-v2": CpuLevel("x86_64", "znver2", (*_ZEN_2_ALONE, *_V3_ALONE), _V2),
    "x86-64-v3": CpuLevel("x86_64", "znver2", _ZEN_2_ALONE, _V3),
    "x86-64-v4": CpuLevel("x86_64", "x86-64-v4", (), _V4),
    "aarch64": CpuLevel("aarch64", "generic", (), ()),
}


def levels_that_fit(levels: str, has: Callable[[str], bool] | None) -> list[str]:
    """Return those of the named processor levels that this machine supports, in the given order.

    ValueError: a name is none of the levels.

    levels: names of `CPU_LEVELS` with commas between them.
    has: returns whether the processor has a feature, by LLVM's name; None: check the family of the machine only.
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
    """Return the folders of the cache, in the order in which they are searched.

    These are the folders in RANKWRIGHT_KERNEL_CACHE, with colons between them; without that variable one in the user's
    cache folder, if the user has one, and one beside the code. The user's comes first, and so takes new kernels: it
    outlives the environment of an older version, and a kernel whose source has not changed is not compiled again. The
    last one is in the state folder, if that is given or in RANKWRIGHT_STATE_DIR: new kernels are written there if all
    the others are read-only.
    """
    if named := os.environ.get(FOLDERS):
        found = [Path(folder) for folder in named.split(os.pathsep) if folder]
    else:
        package = Path(__file__).parents[1] / "__init__.py"
        beside = Path(importlib.util.cache_from_source(package)).parent / "kernels"
        home = os.path.expanduser("~")  # unlike `Path.home`, no error for a user who has none
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
        found = [Path(caches, "rankwright", "kernels")] if os.path.isabs(caches) else []
        found.append(beside)
    # Never in the current folder unless it is named: the files are machine code, and anybody may have written them.
    state = state_dir or os.environ.get(STATE)
    if state and os.path.isdir(state):
        found.append(Path(state).absolute() / "kernels")
    return list(dict.fromkeys(found))


def write_list(stamp: str, kernels: list[list[str]]) -> None:
    """Write the kernels' file names of a source and processor (`stamp`), from which others count compiled ones."""
    text = "".join(f"{' '.join(files)}\n" for files in kernels)
    for folder in folders():
        path = folder / f"{_LIST}{stamp}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f".{path.name}.{os.getpid()}")  # not seen as a list
            fresh.write_text(text)
            fresh.replace(path)
        except OSError:
            continue
        for older in folder.glob(f"{_LIST}*"):
            with contextlib.suppress(OSError):
                if older != path and older.stat().st_mtime < time.time() - KEEP_SECONDS:
                    older.unlink()
        return


def n_compiled(stamp: str = "*", state_dir: Path | None = None) -> tuple[int, int] | None:
    """Count compiled and all kernels; None without a list. stamp: what it was written for; `*`: the newest."""
    present: set[str] = set()
    lists = []
    for folder in folders(state_dir):
        with contextlib.suppress(OSError):
            present.update(os.listdir(folder))
            lists += [(path.stat().st_mtime, path) for path in folder.glob(f"{_LIST}{stamp}")]
    if not lists:
        return None
    try:
        kernels = [line.split() for line in max(lists)[1].read_text().splitlines()]
    except (OSError, ValueError):  # it is gone, or no text
        return None
    return sum(present.issuperset(files) for files in kernels), len(kernels)


def writable_folder(state_dir: Path | None = None) -> Path | None:
    """Return the folder to which new kernels are written; None if no cache folder is writable."""
    for folder in folders(state_dir):
        there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
        if os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK):
            return folder
    return None
