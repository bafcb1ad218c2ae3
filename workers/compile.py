"""Compilation of every kernel into the cache: `python -m workers.compile`, in as many processes as there are cores.

The build of the image runs it, and so does `make test` at its start. A worker runs it in the background, at low
priority, if the cache is not complete: `--background PID` makes it end with that process. The cache has a list of all
kernels, from which jobs and `rankwright doctor` determine how many are compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from app.platform.processes import child_environment, die_with_parent, python_command
from core.kernels.folders import CPU, CPU_LEVELS, levels_that_fit, n_compiled, write_list

if TYPE_CHECKING:
    from core.kernels import Kernel

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "app")
# Modules of the kernels that take longest. Of several processes all but the first begin with them. `run_worker` and
# `run_task` are half of what a first job on trees compiles. Neither contains the other, and a job compiles `run_worker`
# last: so it comes first here.
LONGEST = ("core.trees.schedule", "core.trees.tasks", "core.trees")
# Modules of the kernels that a first upload, training job of the default algorithm and score need, in that order.
COMPILED_FIRST = (
    "app.ingest",
    "core.coding.bins",
    "core.coding.categories",
    "core.coding.best_split",
    "core.coding.histogram",
    "core.boosting.stumps",
    "core.linear.design",
    "core.linear.cutting_planes",
    "core.linear.surrogates",
    "core.metrics.column",
    "core.metrics.groups",
    "core.metrics.intervals",
    "core.metrics.margins",
    "core.probability",
    "app.scoring",
)
CPUINFO = Path("/proc/cpuinfo")
# Linux's names of what LLVM calls otherwise.
FLAGS = {"sahf": "lahf_lm", "sse3": "pni", "bmi": "bmi1", "lzcnt": "abm"}
NICE = 19
PAUSE_SECONDS = 0.2


def main(arguments: list[str]) -> int:
    """Compile the missing kernels; returns the exit code. Prints the result unless it runs in the background."""
    given = _options(arguments)
    if given.levels:
        return _compile_each(given)
    target = given.level or own_target()
    if given.level:
        os.environ.pop(CPU, None)  # `core.kernels` would choose by this machine
        from core.kernels import use_cpu_level

        use_cpu_level(given.level, must_run=False)
    if given.background:
        die_with_parent(given.background)
        os.nice(NICE)
    kernels = all_kernels()
    missing = [kernel for kernel in kernels if not kernel.is_cached]
    if given.helper:
        compile_missing(longest_first(missing))
        return 0
    write_list(stamp_of(target), [kernel.files for kernel in kernels])
    quiet = bool(given.background)
    started = time.monotonic()
    n_helpers = min(given.processes, len(missing)) - 1
    if missing and not quiet:
        _say(
            f"compiling {len(missing)} of {len(kernels)} kernels for {given.level or 'this machine'}, once, "
            f"in {max(n_helpers, 0) + 1} processes"
        )
    helpers = [_helper(given) for _ in range(n_helpers)]
    try:
        compile_missing(missing)
    finally:
        codes = [helper.wait() for helper in helpers]
    if any(codes):
        _say(f"a compiling process ended with code {max(codes, key=abs)}")
        return 1
    if not quiet:
        took = f" in {time.monotonic() - started:.0f} s" if missing else ""
        _say(f"{len(kernels)} kernels are compiled{took}")
    return 0


def _compile_each(given: argparse.Namespace) -> int:
    """Compile for each CPU level in a separate process, because numba chooses its target once per process; returns the
    exit code.
    """
    for level in given.levels:
        options = ["--level", level, "--processes", str(given.processes)]
        process = get_context("fork").Process(target=_compile_level, args=(options,))
        process.start()
        process.join()
        if process.exitcode:
            return 1
    return 0


def _compile_level(options: list[str]) -> None:
    sys.exit(main(options))


def all_kernels() -> list[Kernel]:
    """Return every kernel of this program, the most frequently used first."""
    for path in _sources():
        if "core.kernels import" in path.read_text() and path.name != "compile.py":
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    from core.kernels import KERNELS

    ours = [kernel for kernel in KERNELS if kernel.name.partition(".")[0] in PACKAGES]
    return sorted(ours, key=lambda kernel: _rank(kernel, COMPILED_FIRST))


def longest_first(kernels: list[Kernel]) -> list[Kernel]:
    """Return the kernels in the order for a helper process: those that take longest first."""
    return sorted(kernels, key=lambda kernel: _rank(kernel, LONGEST))


def _rank(kernel: Kernel, modules: tuple[str, ...]) -> int:
    """Return the index of the first of these modules to which a kernel belongs; their number if it belongs to none."""
    ranks = (i for i, module in enumerate(modules) if kernel.name.startswith(module))
    return next(ranks, len(modules))


def compile_missing(kernels: list[Kernel]) -> None:
    """Compile the kernels that are not cached; first those that no other process is compiling."""
    left = list(kernels)
    while left:
        busy = []
        for kernel in left:
            if kernel.is_cached:
                continue
            if kernel.is_compiled_elsewhere:
                busy.append(kernel)
            else:
                kernel.load()
        if len(busy) == len(left):
            time.sleep(PAUSE_SECONDS)  # until one of them is done, or its process dead
        left = busy


def compiled_so_far() -> tuple[int, int] | None:
    """Return the number of cached kernels of the current sources for this machine, and the number of all kernels; None
    if they have not been counted yet.

    None: no process has counted them yet.
    """
    return n_compiled(stamp_of(own_target()))


@cache
def stamp_of(target: str) -> str:
    """Return a hash of the sources, the versions and the target processors."""
    whole = hashlib.sha256()
    for path in _sources():
        whole.update(path.read_bytes())
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    whole.update(repr((versions, sys.implementation.cache_tag, target)).encode())
    return whole.hexdigest()[:16]


def own_target() -> str:
    """Return the target processors of this machine's kernels: a CPU level, or its own model.

    Linux provides the model, because LLVM takes as much memory as a worker. If the two differ, a kernel is compiled at
    its first call.
    """
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        lines = []
    flags = {flag for line in lines if line.startswith("flags") for flag in line.split()}
    fitting = levels_that_fit(
        os.environ.get(CPU, ""), lambda name: FLAGS.get(name, name.replace(".", "_")) in flags
    )
    describing = ("model name", "flags", "Features", "CPU part")
    own = "\n".join(sorted({line for line in lines if line.startswith(describing)}))
    return fitting[0] if fitting else own or platform.processor()


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _helper(given: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start a helper process and return it."""
    command = python_command("workers.compile", "--helper")
    if given.level:
        command += ["--level", given.level]
    if given.background:
        command += ["--background", str(os.getpid())]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=child_environment())


def _options(arguments: list[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m workers.compile", description=__doc__)
    parser.add_argument(
        "--processes", type=int, default=_cores(), help="default: the number of cores"
    )
    parser.add_argument(
        "--background", type=int, metavar="PID", help="run at low priority and print nothing"
    )
    parser.add_argument(
        "--every-level",
        action="store_true",
        help=f"for each level of this family that {CPU} names, whether or not this processor can run it: for an image",
    )
    parser.add_argument("--level", choices=CPU_LEVELS, help=argparse.SUPPRESS)
    parser.add_argument("--helper", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        named = levels_that_fit(os.environ.get(CPU, ""), None)
    except ValueError as error:
        parser.error(str(error))
    given.levels = named if given.every_level else []
    return given


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
