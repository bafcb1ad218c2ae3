"""Compiling all kernels: each once, by the requested number of processes, counted by a list of them."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.kernels.folders import CPU_LEVELS, n_compiled, write_list
from tests.long_form import long_form
from workers import __main__ as worker
from workers import compile as compiling
from workers.child import Loading
from workers.fit_process import Message

KERNELS = """
import numba
from core.kernels import kernel

@kernel(numba.float64(numba.float64))
def first(x):
    return 2 * x

@kernel(numba.float64(numba.float64))
def second(x):
    return first(x) + 1
"""
PROGRAM = """
import sys
from pathlib import Path
from workers import __main__ as worker
from workers import compile as compiling
compiling.ROOT, compiling.PACKAGES = Path({root!r}), ("house",)
compiling.COMPILED_FIRST = ("house.kernels.first",)
sys.exit(compiling.main({arguments!r}))
"""


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two kernels, and a cache of its own."""
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(KERNELS)
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2]}")
    return tmp_path


def run(house: Path, *arguments: str) -> str:
    program = PROGRAM.format(root=str(house), arguments=list(arguments))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@long_form
def test_all_are_compiled_once_and_counted(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CPU", "")  # no level is named: they are for this machine
    said = run(house, "--every-level", "--processes", "1").splitlines()
    assert "2 of 2 kernels" in said[0]
    assert said[0].endswith("in 1 processes")
    assert said[1].startswith("2 kernels are compiled")
    names = sorted(path.name.split(".")[2] for path in (house / "cache").glob("*.kernel"))
    assert names == ["first", "second"]
    assert run(house) == "2 kernels are compiled\n"

    monkeypatch.setattr(compiling, "ROOT", house)
    monkeypatch.setattr(compiling, "PACKAGES", ("house",))
    compiling.stamp_of.cache_clear()
    assert compiling.compiled_so_far() == (2, 2)
    next((house / "cache").glob("*second*.kernel")).unlink()
    assert compiling.compiled_so_far() == (1, 2)
    with (house / "house" / "kernels.py").open("a") as file:
        file.write("# changed\n")
    compiling.stamp_of.cache_clear()
    assert compiling.compiled_so_far() is None
    compiling.stamp_of.cache_clear()
    assert n_compiled() == (1, 2)  # of the newest list


@long_form
def test_what_a_first_model_needs_is_compiled_alone(house: Path) -> None:
    run(house, "--first")
    (compiled,) = (house / "cache").glob("*.kernel")
    assert compiled.name.startswith("house.kernels.first.")
    assert "compiling 1 of 2 kernels" in run(house)


@long_form
def test_two_processes_compile_each_kernel_once(house: Path) -> None:
    assert "in 2 processes" in run(house, "--processes", "2")
    assert len(list((house / "cache").glob("*.kernel"))) == 2


def test_processes_of_low_priority_give_way_to_a_job_that_waits_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CACHE", str(tmp_path))
    assert worker.compile_beside(lambda: True) is None


# A machine of another model, by what Linux and LLVM tell of it, without these features.
MACHINE = """
import llvmlite.binding as llvm
llvm.get_host_cpu_name = lambda: {name!r}
features = llvm.get_host_cpu_features()
features.update(dict.fromkeys({lacks!r}, False))
llvm.get_host_cpu_features = lambda: features
compiling.CPUINFO = Path({cpuinfo!r})
compiled = []
from core.kernels import compiled as kernel
kernel._listeners.append(compiled.append)
from house.kernels import second
before = compiling.compiled_so_far()
print(before, second(1.0), len([name for name in compiled if name]))
"""
V3_ALONE = ["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"]
IMAGE = "x86-64-v3,x86-64-v2,aarch64"


def on_machine(house: Path, name: str, lacks: list[str]) -> str:
    """How many kernels the cache has for it, what a kernel returns, and how many had to be compiled for it."""
    linux = {"sahf": "lahf_lm", "sse3": "pni", "bmi": "bmi1", "lzcnt": "abm"}
    needs = [*CPU_LEVELS["x86-64-v3"].needs]
    flags = [linux.get(f, f.replace(".", "_")) for f in needs if f not in lacks]
    cpuinfo = house / "cpuinfo"
    cpuinfo.write_text(f"model name\t: {name}\nflags\t\t: {' '.join(flags)}\n" * 2)
    machine = MACHINE.format(name=name, lacks=lacks, cpuinfo=str(cpuinfo))
    program = PROGRAM.replace("sys.exit(compiling.main({arguments!r}))\n", "")
    program = program.format(root=str(house)) + machine
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="aarch64 has one level, for all")
@long_form
def test_an_image_is_for_every_processor_of_its_levels(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On any processor down to the lowest level, an image from any builder compiles nothing, and looks for nothing."""
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CPU", IMAGE)
    builder = "import llvmlite.binding as llvm\nllvm.get_host_cpu_features = dict\n"
    program = builder + PROGRAM.format(
        root=str(house), arguments=["--every-level", "--processes", "1"]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("compiling")]
    assert [line.split(" for ")[1].split(",")[0] for line in said] == ["x86-64-v3", "x86-64-v2"]
    assert on_machine(house, "haswell", []) == "(2, 2) 3.0 0"
    assert on_machine(house, "nehalem", V3_ALONE) == "(2, 2) 3.0 0"
    assert on_machine(house, "core2", [*V3_ALONE, "popcnt", "sse4.2"]) == "None 3.0 2"
    # A list of one processor's own kernels says nothing of another's.
    monkeypatch.delenv("RANKWRIGHT_KERNEL_CPU")
    assert on_machine(house, "haswell", []) == "None 3.0 2"


def test_an_image_for_a_level_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CPU", "x86-64-v3,i386")
    with pytest.raises(SystemExit) as caught:
        compiling.main(["--every-level"])
    assert caught.value.code == 2
    words = "RANKWRIGHT_KERNEL_CPU must be of x86-64-v2, .*, got 'i386'"
    assert re.search(words, capsys.readouterr().err)


@long_form
def test_in_the_background_it_says_nothing(house: Path) -> None:
    program = PROGRAM.format(root=str(house), arguments=["--processes", "1", "--background"])
    program = program.replace("'--background'", "'--background', str(__import__('os').getppid())")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert len(list((house / "cache").glob("*.kernel"))) == 2


def test_a_job_that_waits_for_a_compiler_tells_how_many_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CACHE", f"/dev/null/none:{tmp_path}")
    told: list[Message] = []
    loading = Loading(told.append)
    loading.kernels("core.first")
    write_list(compiling.stamp_of(compiling.own_target()), [["one"], ["two", "too"], ["three"]])
    for name in ("one", "two"):
        (tmp_path / name).touch()
    loading.kernels("core.second")
    loading.kernels(None)
    assert [re.findall(r"\d+", message["detail"]) for message in told[:2]] == [["1"], ["1", "3"]]


def test_there_are_few_kernels_in_all() -> None:
    """Each kernel costs a third of a second of compilation on a new machine: see CONTRIBUTING before raising these."""
    kernels = compiling.all_kernels()
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    assert len(kernels) <= 120
    assert sum(len(kernel.signatures) for kernel in kernels) <= 135
