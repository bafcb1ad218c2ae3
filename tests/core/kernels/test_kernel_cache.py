"""The cache of kernels: nothing outdated is loaded, and no change of a folder is an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core.kernels import folders as kernel_folders
from core.kernels.folders import CPU
from tests.sentences import Sentences

ROOT = Path(__file__).parents[3]
CALLER = """
import numba
from core.kernels import kernel
from house.callee import scaled
from house.constants import OFFSET

@kernel(numba.float64(numba.float64))
def shifted(x):
    return scaled(x) + OFFSET
"""
CALLEE = """
import numba
from core.kernels import kernel

@kernel(numba.float64(numba.float64), inner=True)
def scaled(x):
    return 2 * x
"""
# Prints the names of the kernels that are compiled, then what the kernel gives.
PROGRAM = """
from core.kernels import when_compiling
from house.caller import shifted
names = []
with when_compiling(names.append):
    found = shifted(3.0)
print([name.split('.')[-1] for name in names if name], found)
"""

TASK = """
import numba
from core.coding.threads import call_at
from core.kernels import kernel

@kernel(numba.void(numba.int64, numba.int64, numba.int64), by_address=True)
def refuse_odd(place, room, task):
    if task % 2:
        raise ValueError("odd")

@kernel(numba.boolean(numba.int64, numba.int64))
def run(address, task):
    return call_at(address, 0, 0, task)
"""
# Prints the same, and for three tasks whether the task has raised.
CALLS_BY_ADDRESS = """
from core.kernels import address_of_kernel, when_compiling
from house.task import refuse_odd, run
names = []
with when_compiling(names.append):
    address = address_of_kernel(refuse_odd)
    found = [run(address, task) for task in range(3)]
print([name.split('.')[-1] for name in names if name], found, sep='; ')
"""

FOUND = "[False, True, False]"

Run = Callable[..., str]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A project of its own with a kernel, another that it calls, and a constant, each in a file."""
    package = tmp_path / "house"
    package.mkdir()
    for name, text in {"__init__": "", "caller": CALLER, "callee": CALLEE}.items():
        (package / f"{name}.py").write_text(text)
    (package / "constants.py").write_text("OFFSET = 1.0\n")
    return package


# Reads programs, each with its environment, and runs each in a fork of its own: numba is imported once for all. Numba
# reads nothing of the environment that they change; `core.kernels` does, and is imported by the program. What numba
# makes before its first compilation takes twenty times what a kernel takes to load. It is made once for all too, but
# not for a program that chooses the processor: it is made for the processor.
FORKS = """
import json, os, sys, traceback
from concurrent.futures import ThreadPoolExecutor
import numba
import scipy.linalg  # numba's first compilation imports it
sys.dont_write_bytecode = True
if sys.argv[1:] == ["ready"]:
    numba.njit(numba.float64(numba.float64))(lambda x: x)

for line in sys.stdin:
    environment, program = json.loads(line)
    pipes = [os.pipe(), os.pipe()]
    pid = os.fork()
    if pid == 0:
        for number, (_, into) in enumerate(pipes, 1):
            os.dup2(into, number)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:0] = environment["PYTHONPATH"].split(":")
        try:
            exec(program, {"__name__": "__main__"})
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    for _, into in pipes:
        os.close(into)
    files = [os.fdopen(out) for out, _ in pipes]
    with ThreadPoolExecutor() as pool:  # both at once: a fork waits while a pipe is full
        said = list(pool.map(lambda file: file.read(), files))
    for file in files:
        file.close()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), *said]), flush=True)
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[dict[bool, subprocess.Popen[str]]]:
    """Processes that fork: one that is ready to compile, and one that does not know the processor yet."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        processes = {}
        for is_ready in (True, False):
            command = [sys.executable, "-c", FORKS, *["ready"] * is_ready]
            process = subprocess.Popen(command, text=True, env={"PATH": ""}, **pipes)
            processes[is_ready] = stack.enter_context(process)
        yield processes


@pytest.fixture
def run(forks: dict[bool, subprocess.Popen[str]], house: Path, tmp_path: Path) -> Run:
    """Run a program that can import ours, with these folders for its kernels."""

    def run(
        *folders: Path | str, program: str = PROGRAM, before: str = "", **variables: str
    ) -> str:
        environment = {
            "PATH": "",
            "HOME": str(tmp_path),
            "PYTHONPATH": f"{house.parent}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "RANKWRIGHT_KERNEL_CACHE": ":".join(map(str, folders or [tmp_path / "kernels"])),
            **variables,
        }
        if "PYTHONHASHSEED" in variables:  # no fork can have another
            command = [sys.executable, "-c", before + program]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            return done.stdout.strip()
        fork = forks[CPU not in environment and "llvm" not in before]
        fork.stdin.write(json.dumps([environment, before + program]) + "\n")
        fork.stdin.flush()
        code, out, err = json.loads(fork.stdout.readline())
        assert code == 0, err
        return str(out).strip()

    return run


BOTH = "['shifted', 'scaled'] 7.0"
NONE = "[] 7.0"


def test_a_second_process_compiles_nothing(run: Run, tmp_path: Path) -> None:
    assert run() == BOTH
    assert run(PYTHONHASHSEED="17") == NONE
    assert all(path.suffix == ".kernel" for path in (tmp_path / "kernels").iterdir())


def test_a_kernel_that_was_kept_is_called_by_its_address(run: Run, house: Path) -> None:
    (house / "task.py").write_text(TASK)
    assert run(program=CALLS_BY_ADDRESS) == "['refuse_odd', 'run']; " + FOUND
    assert run(program=CALLS_BY_ADDRESS) == "[]; " + FOUND


def test_what_a_kernel_calls_in_another_file_is_never_stale(run: Run, house: Path) -> None:
    assert run() == BOTH
    (house / "callee.py").write_text(CALLEE.replace("2 * x", "5 * x"))
    assert run() == "['shifted', 'scaled'] 16.0"
    (house / "callee.py").write_text(CALLEE)
    assert run() == NONE  # its old edition is still there


def test_a_constant_of_another_file_is_never_stale(run: Run, house: Path) -> None:
    assert run() == BOTH
    (house / "constants.py").write_text("OFFSET = 10.0\n")
    assert run() == "['shifted'] 16.0"
    (house / "constants.py").write_text("# Told anew.\nOFFSET = 10.0\n")
    assert run() == "[] 16.0"


def test_files_that_are_cut_off_or_spoilt_are_compiled_again(run: Run, tmp_path: Path) -> None:
    assert run() == BOTH
    first, second = (tmp_path / "kernels").iterdir()
    first.write_bytes(first.read_bytes()[:-100])
    second.write_bytes(b"")
    assert run() == BOTH
    assert run() == NONE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_another_users_files_are_not_loaded(run: Run, tmp_path: Path) -> None:
    assert run() == BOTH
    for path in (tmp_path / "kernels").iterdir():
        os.chown(path, 10002, 10002)
    assert run() == BOTH


def test_a_folder_that_cannot_be_written_to_is_passed_over(run: Run, tmp_path: Path) -> None:
    assert run("/dev/null/kernels") == BOTH
    assert run("/dev/null/kernels", tmp_path / "kernels") == BOTH
    assert run(tmp_path / "empty", tmp_path / "kernels") == NONE
    assert not (tmp_path / "empty").exists()


FOLDERS = """
from core.kernels import folders as kernel_folders
from core.kernels.cache import stamp_of
print(*kernel_folders.folders(), kernel_folders.writable_folder(), sep="\\n")
"""


def test_a_state_folder_that_nobody_named_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody who can write to the current folder may own the file, and what is loaded is machine code."""
    (tmp_path / ".rankwright").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKWRIGHT_STATE_DIR", raising=False)
    assert not any(tmp_path in folder.parents for folder in kernel_folders.folders())
    named = kernel_folders.folders(tmp_path / ".rankwright")[-1]
    assert named == tmp_path / ".rankwright" / "kernels"


def test_the_state_folder_takes_what_no_other_can(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state"
    asked = {"HOME": "~", "program": FOLDERS, "RANKWRIGHT_STATE_DIR": str(state)}
    nowhere = run("/dev/null/kernels", **asked).splitlines()
    assert nowhere == ["/dev/null/kernels", "None"]  # it is not made for kernels alone
    state.mkdir()
    with_state = run("/dev/null/kernels", **asked).splitlines()
    assert with_state == ["/dev/null/kernels", *[str(state / "kernels")] * 2]
    # A user without a home has no folder of caches.
    beside, last, _ = run(**asked | {"RANKWRIGHT_KERNEL_CACHE": ""}).splitlines()
    assert (Path(beside).name, last) == ("kernels", str(state / "kernels"))
    assert run("/dev/null/kernels", RANKWRIGHT_STATE_DIR=str(state)) == BOTH
    assert run("/dev/null/kernels", RANKWRIGHT_STATE_DIR=str(state)) == NONE


def test_a_full_disk_is_done_without(run: Run, tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    full += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    assert run(before=full) == BOTH
    left = [path for path in (tmp_path / "kernels").iterdir() if path.stat().st_size]
    assert left == []
    assert run() == BOTH


def test_of_two_processes_one_compiles_and_the_other_waits(run: Run) -> None:
    """The first process holds the kernel's lock until the second asks for it."""
    program = """
import os, subprocess, sys, time
from core.kernels import when_compiling
from house.caller import shifted
from core.kernels import KernelCache
save, second = KernelCache.save_overload, []

def save_late(self, *arguments):
    if not second:
        second.append(subprocess.Popen([sys.executable, "-c", {second!r}], stdout=subprocess.PIPE))
        assert second[0].stdout.readline() == b"asks\\n"
        while not any("->" in line and f" {{second[0].pid}} " in line for line in open("/proc/locks")):
            time.sleep(.01)
    save(self, *arguments)

KernelCache.save_overload = save_late
shifted(3.0)
print(second[0].stdout.read().decode())
"""
    asks = """
from core.kernels import KernelCache
from house.caller import shifted
compiled = []
load = KernelCache.load_overload

def noted(self, *arguments):
    print("asks", flush=True)
    KernelCache.load_overload = load
    return load(self, *arguments)

KernelCache.load_overload = noted
save = KernelCache.save_overload
KernelCache.save_overload = lambda self, *rest: compiled.append(self.name) or save(self, *rest)
print(shifted(3.0), compiled)
"""
    # The second waits for the caller, whose callee the first has in its cache by then.
    if not Path("/proc/locks").exists():
        pytest.skip("only Linux shows who waits for a lock")
    assert run(program=program.format(second=asks)) == "7.0 []"


MACHINE = """
import llvmlite.binding as llvm
llvm.get_host_cpu_name = lambda: {name!r}
features = llvm.get_host_cpu_features()
for feature in {missing!r}:
    features[feature] = False
llvm.get_host_cpu_features = lambda: features
"""
LEVEL = {CPU: "x86-64-v3,aarch64"}


def test_kernels_for_a_level_serve_every_processor_of_it(run: Run) -> None:
    assert run(**LEVEL) == BOTH
    other = MACHINE.format(name="haswell", missing=["sse4a", "sha"])
    assert run(before=other, **LEVEL) == NONE
    assert run(before=other) == BOTH  # without a level it is another processor


def test_a_processor_below_the_level_compiles_for_itself(run: Run) -> None:
    assert run(**LEVEL) == BOTH
    below = MACHINE.format(name="core2", missing=["avx2", "fma", "neon", "fp-armv8"])
    if "x86" not in run(program="import platform; print(platform.machine())"):
        pytest.skip("aarch64 has one level, which every machine has")
    assert run(before=below, **LEVEL) == BOTH
    assert run(before=below, **LEVEL) == NONE


def test_a_level_that_is_none_is_refused(sentences: Sentences) -> None:
    from core.kernels import use_cpu_level

    with sentences.raises(ValueError):
        use_cpu_level("i386")


def test_code_for_a_level_has_no_instruction_beyond_it(run: Run) -> None:
    """Check the vector instructions: another processor would fail at one of these first."""
    program = """
import platform
import numba
import numpy as np
from core.kernels import kernel

@kernel(numba.float64(numba.float64[::1]), fastmath=True)
def total(x):
    found = 0.0
    for value in x:
        found += value * value
    return found

total(np.ones(9))
code = "\\n".join(total.inspect_asm().values())
avx = any(line.lstrip().startswith("v") for line in code.splitlines())
print(platform.machine(), avx, *(name for name in ("xmm", "ymm", "zmm") if name in code))
"""
    said = {
        level: run(program=program, **{CPU: level}).split() for level in ("x86-64-v2", "x86-64-v3")
    }
    if said["x86-64-v2"][0] != "x86_64":
        pytest.skip("only x86-64 has several levels")
    assert said["x86-64-v2"][1:] == ["False", "xmm"]
    assert said["x86-64-v3"][1:] == ["True", "xmm", "ymm"]
