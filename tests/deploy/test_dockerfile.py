"""The Dockerfile can be built: its files exist, its dependencies are pinned, its user is not root."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest

from core.kernels.folders import CPU_LEVELS
from tests.deploy import dockerfile

ROOT = Path(__file__).parents[2]


@pytest.fixture
def image() -> dockerfile.Image:
    return dockerfile.read(ROOT / "Dockerfile")


def test_every_file_it_copies_is_there_and_not_ignored(image: dockerfile.Image) -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    allowed = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    sources = {source for copy in image.copies() for source in copy.sources}
    assert all((ROOT / source).exists() for source in sources)
    within = {s: {name for name in allowed if Path(s).is_relative_to(name)} for s in sources}
    assert all(within.values())
    assert set().union(*within.values()) == allowed


def test_dependencies_come_from_the_lock_with_hashes(image: dockerfile.Image) -> None:
    (install,) = (shlex.split(run.text) for run in image.all("RUN") if " -m pip " in run.text)
    assert "--require-hashes" in install
    lock = install[install.index("-r") + 1]
    assert [c.sources[0] for c in image.copies() if c.target == lock] == [
        "requirements/runtime.lock"
    ]


def test_it_does_not_run_as_root(image: dockerfile.Image) -> None:
    uid, gid = map(int, image.user.split(":"))
    assert uid > 0
    assert gid > 0
    assert set(image.owned_folders().values()) == {(uid, gid)}
    assert image.workdir in image.owned_folders()
    *_, writable = image.environment["RANKWRIGHT_KERNEL_CACHE"].split(":")
    assert str(Path(writable).parent) in image.owned_folders()


def test_its_kernels_are_for_levels_of_processors_and_not_for_the_builder(
    image: dockerfile.Image,
) -> None:
    levels = image.environment["RANKWRIGHT_KERNEL_CPU"]
    assert {CPU_LEVELS[level].machine for level in levels.split(",")} == {"x86_64", "aarch64"}
    assert "x86-64-v2" in levels  # what many virtual machines are
    (compiled,) = (run.text for run in image.all("RUN") if "workers.compile" in run.text)
    assert shlex.split(compiled)[-1] == "--every-level"


def test_all_that_the_code_imports_is_in_the_image(image: dockerfile.Image) -> None:
    """The environment of the tests holds more than the image, and would hide a package that is missing there."""
    ours = ("app", "core", "migrations", "rankwright", "workers")
    assert set(ours) <= {Path(source).name for copy in image.copies() for source in copy.sources}
    # Whose tables the client takes, and of the extra `onnx`, without which the service says that it is missing.
    where_installed = {"matplotlib", "pandas", "polars", "onnx", "onnxruntime"}
    distributions = packages_distributions()
    pinned = re.findall(
        r"^([\w.-]+)==", (ROOT / "requirements/runtime.lock").read_text(), re.MULTILINE
    )
    graph = grimp.build_graph(*ours, include_external_packages=True, cache_dir=None)
    packages = {name for name in graph.modules if graph.is_module_squashed(name)}
    assert packages > {
        "numpy",
        "sqlalchemy",
        "resvg_py",
    }  # the last is imported in a function alone
    for package in packages - where_installed - sys.stdlib_module_names:
        names = {name.lower().replace("_", "-") for name in distributions[package]}
        importers = graph.find_modules_that_directly_import(package)
        assert names & set(pinned), f"{sorted(importers)} import {package}"
