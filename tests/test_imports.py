"""Modules that each process must not import. Memory and start-up time grow by imports, so imports are tested."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import core
from core.registry import ALGORITHMS
from tests.long_form import long_form
from tests.raising import raises

SCIENCE = {"numba", "llvmlite", "scipy", "sklearn", "narwhals", "safetensors", "threadpoolctl"}
ARROW = {"pyarrow"}
DATABASE = {"sqlalchemy", "alembic", "psycopg"}
WEB = {"fastapi", "starlette", "uvicorn"}
QUEUE = {"celery", "kombu", "redis"}
BUCKET = {"obstore"}  # only for a process whose blobs are in a bucket
SOURCE = {"adbc_driver_manager", "adbc_driver_postgresql"}  # only for the process of a query
ALL = SCIENCE | ARROW | DATABASE | WEB | QUEUE | BUCKET | SOURCE | {"numpy", "pandas"}


def imported(*steps: str, folder: Path) -> list[set[str]]:
    """The packages in the memory of a process of its own, after each step of its code."""
    tell = (
        "\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=told)\n"
    )
    program = "import json, sys\ntold = open('told', 'w')\n" + tell.join([*steps, "told.close()"])
    environment = {
        "RANKWRIGHT_STATE_DIR": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=os.environ | environment,
    )
    return [set(json.loads(line)) for line in (folder / "told").read_text().splitlines()]


def command(*arguments: str) -> str:
    """Code that runs a command line to its end, however that is."""
    return f"""
import sys
sys.argv = ["rankwright", *{arguments!r}]
from app.cli import main
try:
    main()
except SystemExit:
    pass
"""


API = """
import asyncio
from app.platform.migrate import upgrade
from app.platform.settings import Settings
upgrade(Settings().sqlalchemy_url)
for name in [name for name in sys.modules if name.partition(".")[0] in ("alembic", "mako")]:
    del sys.modules[name]
from app.main import app_factory
app = app_factory()
async def live():
    async with app.router.lifespan_context(app):
        await asyncio.to_thread(app.state.context.background.close)
asyncio.run(live())
"""

UNREACHABLE = ("--url", "http://127.0.0.1:9", "--key", "rw_none")

# No step may import modules that later steps may import. So one process can take all steps, one after the other.
PROCESSES = {
    "help": (command("--help"), ALL | {"httpx"}),
    "a command's help": (command("train", "--help"), ALL | {"httpx"}),
    "models": (command("show", "a-model", *UNREACHABLE), ALL),
    "algorithms": (command("algorithms", *UNREACHABLE), ALL),
    "upload": (command("upload", __file__, *UNREACHABLE), ALL),
    "score": (command("score", "a-model", "x=1", *UNREACHABLE), ALL),
    "train": (command("train", "a-dataset", *UNREACHABLE), ALL),
    "core": ("import core, core.registry, core.boosting, core.metrics", ALL),
    "supervisor": (
        "import app.serve.supervisor",
        SCIENCE | ARROW | WEB | DATABASE | QUEUE | BUCKET | SOURCE | {"numpy"},
    ),
    "health of a worker": (
        command("health", "worker"),
        SCIENCE | ARROW | WEB | QUEUE | {"numpy", "pandas", "alembic", "prometheus_client"},
    ),
    "dispatcher": (
        "import app.cli.processes, app.jobs.dispatcher, app.operations.housekeeping",
        SCIENCE | ARROW | WEB | BUCKET | SOURCE | {"numpy", "pandas", "alembic"},
    ),
    "worker": (
        "import workers.__main__, workers.attempt",
        SCIENCE | ARROW | WEB | BUCKET | SOURCE | {"numpy", "pandas"},
    ),
    "worker at work": (
        """
import workers.__main__, workers.attempt
from app.jobs import execution, kinds
for kind in kinds.KINDS:
    kinds.kind_of(kind)
""",
        SCIENCE | ARROW | WEB | BUCKET | SOURCE | {"pandas"},
    ),
    "API": ("import sys\n" + API, SCIENCE | ARROW | BUCKET | SOURCE | {"pandas", "resvg_py"}),
}


def test_no_process_imports_what_it_is_not_for(tmp_path: Path) -> None:
    codes, forbidden = zip(*PROCESSES.values(), strict=True)
    found = zip(PROCESSES, imported(*codes, folder=tmp_path), forbidden, strict=True)
    assert {process: held & never for process, held, never in found if held & never} == {}


@long_form
def test_without_identity_providers_their_libraries_are_not_imported(tmp_path: Path) -> None:
    (held,) = imported("import sys\n" + API, folder=tmp_path)
    assert held & {"joserfc", "httpx"} == set()


@long_form
def test_the_science_preloads_what_submission_and_scoring_need(tmp_path: Path) -> None:
    code = """
import importlib.metadata
from app.preload import preload
preload()
try:
    import pandas.api
except ModuleNotFoundError:  # as where it is not installed
    pass
assert importlib.metadata.version("numpy")
"""
    (found,) = imported(code, folder=tmp_path)
    assert found >= {"numba", "sklearn", "pyarrow"}
    assert "pandas" not in found  # scikit-learn and pyarrow would bring it, where it is installed


@long_form
def test_a_first_score_imports_nothing_of_numba(tmp_path: Path) -> None:
    code = """
import sys
from app.preload import preload
preload()
before = set(sys.modules)
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()  # as the first kernel does
assert set(sys.modules) == before
"""
    imported(code, folder=tmp_path)


@pytest.mark.parametrize(
    "package",
    [
        *("core", "core.boosting", "core.bounds", "core.explain", "core.kernels", "core.linear"),
        *("core.metrics", "core.monitoring", "core.probability", "core.selection"),
    ],
)
def test_lazy_names_are_found(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        getattr(module, name)
    with raises(AttributeError, "'nothing'"):
        _ = module.nothing


ONE_RANKER = """
import sys
from core import RankBoost
families = {name.split(".")[1] for name in sys.modules if name.startswith("core.")}
assert not families & {"ensemble", "linear", "martirank", "selection", "svm", "treerank"}, families
"""


@long_form
def test_one_ranker_brings_no_other_family(tmp_path: Path) -> None:
    (ranker,) = imported(ONE_RANKER, folder=tmp_path)
    assert ranker & (DATABASE | WEB | QUEUE | {"safetensors"}) == set()


def test_the_registry_knows_names_without_classes_and_gives_the_public_ones() -> None:
    assert len(ALGORITHMS) == len(list(ALGORITHMS))
    assert "nothing" not in ALGORITHMS
    assert {algorithm.__name__ for algorithm in ALGORITHMS.values()} < set(core.__all__)
