"""Compilation of every kernel into the cache: `python -m workers.compile`, in as many processes as there are cores.

The build of the image runs it, and so does `make test` at its start. A worker runs it in the background if the cache
is not complete: first with `--first`, for the kernels that a first model needs, then at low priority for all others.
`--background PID` makes it end with that process. The cache has a list of all kernels, from which jobs and
`rankwright doctor` determine how many are compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import os
import pkgutil
import platform
import sys
import time
from collections.abc import Iterator
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from app.platform.processes import die_with_parent
from core.kernels.folders import CPU, CPU_LEVELS, levels_that_fit, n_compiled, write_list

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from core.kernels import Kernel

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "app")
# Modules of the kernels that take longest. Of several processes all but the first begin with them: `run_task` alone is
# half of what a first job on trees compiles. `run_worker`, the next, calls it by its address and does not contain it.
LONGEST = ("core.trees.tasks", "core.trees.schedule", "core.trees")
# Kernels, or modules of kernels, that a first upload, model and score need: stumps with their baselines, then trees, in
# the order in which they are called. Trees need `run_worker` last of what grows them, but it takes long.
COMPILED_FIRST = (
    "app.ingest.csv",
    "app.ingest.profile",
    "core.metrics.column",
    "core.coding.bins",
    "core.coding.best_split._find_best_split",
    "core.coding.histogram._add_up_features",
    "core.coding.two_sided",
    "core.boosting.stumps",
    "core.linear.design",
    "core.linear.cutting_planes",
    "core.linear.surrogates.find_pair_violations",
    "core.trees.coding",
    "core.trees.schedule",
    "core.trees.tasks",
    "core.trees.predictor._link_tree",
    "core.trees.predictor._add_scores",
    "core.trees.predictor._add_coded_scores",
    "core.trees.predictor._add_shapley",
    "core.trees.predictor.add_parts",
    "core.metrics.groups",
    "core.metrics.intervals",
    "core.metrics.margins",
    "core.probability.calibration",
    "core.probability.isotonic",
    "core.metrics.fairness._add_placements",
    "core.metrics.curve",
)
FIRST_PROCESSES = 2
"""More would not end sooner: `run_task` takes half of the time of all kernels that come first."""
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
    if given.first:
        kernels = first_kernels()
    else:
        if given.background:
            os.nice(NICE)
        kernels = all_kernels()
        write_list(stamp_of(target), [kernel.files for kernel in kernels])
    missing = [kernel for kernel in kernels if not kernel.is_cached]
    quiet = bool(given.background)
    started = time.monotonic()
    n_helpers = min(given.processes, len(missing)) - 1
    if missing and not quiet:
        _say(
            f"compiling {len(missing)} of {len(kernels)} kernels for {given.level or 'this machine'}, once, "
            f"in {max(n_helpers, 0) + 1} processes"
        )
    helpers = _start_helpers(missing, n_helpers)
    try:
        compile_missing(missing)
    finally:
        for helper in helpers:
            helper.join()
    codes = [helper.exitcode or 0 for helper in helpers]
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


def first_kernels() -> list[Kernel]:
    """Return the kernels of `COMPILED_FIRST` in that order. Only their modules are imported."""
    for name in COMPILED_FIRST:
        pkgutil.resolve_name(name)
    from core.kernels import KERNELS

    ranked = [(_rank(kernel, COMPILED_FIRST), kernel) for kernel in KERNELS]
    named = [(rank, kernel) for rank, kernel in ranked if rank < len(COMPILED_FIRST)]
    return [kernel for _, kernel in sorted(named, key=lambda one: one[0])]


def longest_first(kernels: list[Kernel]) -> list[Kernel]:
    """Return the kernels in the order for a helper process: those that take longest first."""
    return sorted(kernels, key=lambda kernel: _rank(kernel, LONGEST))


def _rank(kernel: Kernel, names: tuple[str, ...]) -> int:
    """Return the index of the first of these names that is the kernel's, its module's or its package's; their number if
    none is.
    """
    ranks = (i for i, name in enumerate(names) if f"{kernel.name}.".startswith(f"{name}."))
    return next(ranks, len(names))


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


def _start_helpers(kernels: list[Kernel], n_helpers: int) -> list[ForkProcess]:
    """Fork processes that help to compile these kernels; a fork has already imported what a new process would."""
    helpers = []
    if n_helpers > 0:
        from core.kernels import load_registries

        load_registries()
    for _ in range(n_helpers):
        helper = get_context("fork").Process(target=_help, args=(kernels, os.getpid()))
        helper.start()
        helpers.append(helper)
    return helpers


def _help(kernels: list[Kernel], parent_pid: int) -> None:
    """Compile the missing ones of these kernels as a helper, until none is left or the parent dies."""
    die_with_parent(parent_pid)
    compile_missing(longest_first(kernels))


def _options(arguments: list[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m workers.compile", description=__doc__)
    parser.add_argument(
        "--processes", type=int, default=_cores(), help="default: the number of cores"
    )
    parser.add_argument(
        "--background",
        type=int,
        metavar="PID",
        help="print nothing, end with this process, and run at low priority except with --first",
    )
    parser.add_argument(
        "--every-level",
        action="store_true",
        help=f"for each level of this family that {CPU} names, whether or not this processor can run it: for an image",
    )
    parser.add_argument("--level", choices=CPU_LEVELS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--first", action="store_true", help="only the kernels that a first model needs"
    )
    given = parser.parse_args(arguments)
    try:
        named = levels_that_fit(os.environ.get(CPU, ""), None)
    except ValueError as error:
        parser.error(str(error))
    given.levels = named if given.every_level else []
    if given.first:
        given.processes = min(given.processes, FIRST_PROCESSES)
    return given


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
