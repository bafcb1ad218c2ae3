"""Compiling all kernels: each once, by as many processes as are asked for, and a note at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workers import compile as compiling

KERNELS = """
import numba
from core.kernel import kernel

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
from workers import compile as compiling
compiling.ROOT, compiling.PACKAGES = Path({root!r}), ("house",)
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


def test_all_are_compiled_once_and_that_is_noted(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(house, "--processes", "1").splitlines()
    assert said[0] == "compiling 2 of 2 kernels for this machine, once, in 1 processes"
    assert said[1].startswith("2 kernels are compiled in ")
    names = sorted(path.name.split(".")[2] for path in (house / "cache").glob("*.kernel"))
    assert names == ["first", "second"]
    assert run(house) == "2 kernels are compiled\n"

    monkeypatch.setattr(compiling, "ROOT", house)
    monkeypatch.setattr(compiling, "PACKAGES", ("house",))
    compiling._note.cache_clear()
    assert compiling.is_complete()
    with (house / "house" / "kernels.py").open("a") as file:
        file.write("# changed\n")
    compiling._note.cache_clear()
    assert not compiling.is_complete()
    compiling._note.cache_clear()


def test_in_the_background_it_says_nothing(house: Path) -> None:
    program = PROGRAM.format(root=str(house), arguments=["--processes", "1", "--background"])
    program = program.replace("'--background'", "'--background', str(__import__('os').getppid())")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert len(list((house / "cache").glob("*.kernel"))) == 2


def test_there_are_few_kernels_in_all() -> None:
    """Each costs every newcomer a third of a second of compilation: see CONTRIBUTING before these numbers grow."""
    kernels = compiling.all_kernels()
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    assert len(kernels) <= 120
    assert sum(len(kernel.signatures) for kernel in kernels) <= 135


def test_what_an_upload_and_a_first_job_need_comes_first() -> None:
    names = [kernel.name for kernel in compiling.all_kernels()]
    stumps, trees, leafrank = (
        min(i for i, name in enumerate(names) if name.startswith(package))
        for package in ("core.boosting.stumps", "core.boosting.tree", "core.treerank")
    )
    assert stumps < trees < leafrank
