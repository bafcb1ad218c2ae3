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
from tests.sentences import Sentences

SCIENCE = {"numba", "llvmlite", "scipy", "sklearn", "narwhals", "safetensors", "threadpoolctl"}
ARROW = {"pyarrow"}
DATABASE = {"sqlalchemy", "alembic", "psycopg"}
WEB = {"fastapi", "starlette", "uvicorn"}
QUEUE = {"celery", "kombu", "redis"}
ALL = SCIENCE | ARROW | DATABASE | WEB | QUEUE | {"numpy", "pandas"}


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
        SCIENCE | ARROW | WEB | DATABASE | QUEUE | {"numpy"},
    ),
    "health of a worker": (
        command("health", "worker"),
        SCIENCE | ARROW | WEB | QUEUE | {"numpy", "pandas", "alembic", "prometheus_client"},
    ),
    "dispatcher": (
        "import app.cli.processes, app.jobs.dispatcher, app.operations.housekeeping",
        SCIENCE | ARROW | WEB | {"numpy", "pandas", "alembic"},
    ),
    "worker": (
        "import workers.__main__, workers.attempt",
        SCIENCE | ARROW | WEB | {"numpy", "pandas"},
    ),
    "worker at work": (
        """
import workers.__main__, workers.attempt
from app.jobs import execution, kinds
for kind in kinds.KINDS:
    kinds.kind_of(kind)
""",
        SCIENCE | ARROW | WEB | {"pandas"},
    ),
    "API": ("import sys\n" + API, SCIENCE | ARROW | {"pandas", "resvg_py"}),
}


def test_no_process_imports_what_it_is_not_for(tmp_path: Path) -> None:
    codes, forbidden = zip(*PROCESSES.values(), strict=True)
    found = zip(PROCESSES, imported(*codes, folder=tmp_path), forbidden, strict=True)
    assert {process: held & never for process, held, never in found if held & never} == {}


def test_the_science_preloads_what_submission_and_scoring_need(tmp_path: Path) -> None:
    code = """
import importlib.metadata, importlib.util
from app.platform.preload import preload
preload()
try:
    import pandas.api
except ModuleNotFoundError:  # as where it is not installed
    pass
assert importlib.util.find_spec("pandas") is None
assert importlib.metadata.version("numpy")
"""
    (found,) = imported(code, folder=tmp_path)
    assert found >= {"numba", "sklearn", "pyarrow"}
    assert "pandas" not in found  # scikit-learn and pyarrow would bring it, where it is installed


def test_a_first_score_imports_nothing_of_numba(tmp_path: Path) -> None:
    code = """
import sys
from app.platform.preload import preload
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
        *("core.metrics", "core.probability", "core.svm"),
    ],
)
def test_lazy_names_are_found(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        getattr(module, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


ONE_RANKER = """
import sys
from core import RankBoost
families = {name.split(".")[1] for name in sys.modules if name.startswith("core.")}
assert not families & {"ensemble", "linear", "martirank", "selection", "svm", "treerank"}, families
"""
MOVED = """
import core, importlib, warnings
for old, new in core._MOVED.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(f"import {old}")
    [warning] = caught
    assert (warning.category, str(warning.message)) == (DeprecationWarning, f"{old} is now {new}")
    assert warning.filename == "<string>", warning.filename
    moved = importlib.import_module(new)
    assert eval(old) is moved and moved.__spec__.name == new
"""
AT_ONCE = """
import sys, threading, warnings
from core.base import ranker
from core.lazy import MovedModules
names, n_threads = [f"old_{i}" for i in range(300)], 4
sys.meta_path.insert(0, MovedModules(dict.fromkeys(names, "core.base.ranker")))
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-6)
barrier, found = threading.Barrier(n_threads), []
def run():
    for name in names:
        barrier.wait()
        found.append(__import__(name))
threads = [threading.Thread(target=run) for _ in range(n_threads)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == n_threads * len(names)
assert all(module is ranker for module in found)
assert ranker.__spec__.name == "core.base.ranker" and ranker.__spec__.origin == ranker.__file__
"""


def test_one_ranker_brings_no_other_family_and_moved_modules_are_found_by_their_old_names(
    tmp_path: Path,
) -> None:
    """Which warn; and by several threads at once. In one process: it takes seconds to import the science."""
    ranker, *_ = imported(ONE_RANKER, MOVED, AT_ONCE, folder=tmp_path)
    assert ranker & (DATABASE | WEB | QUEUE | {"safetensors"}) == set()


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("core.base.ranker", "FollowingFit", "PathEstimator"),
        ("core.base.state", "Rule", "Constraint"),
        ("core.bounds", "LEAST_THETA", "MIN_THETA"),
        ("core.coding", "NO_SPREAD", "INFINITE_ESS"),
        ("core.coding", "Spread", "InverseESS"),
        ("core.coding", "count_rows", "effective_counts"),
        ("core.coding", "measure_spread", "measure_inverse_ess"),
        ("core.metrics.intervals", "least_trials", "worst_case_trials"),
        ("core.metrics.intervals", "share_interval", "proportion_interval"),
    ],
)
def test_renamed_things_are_found_by_their_old_names_which_warn(
    module: str, old: str, new: str, sentences: Sentences
) -> None:
    home = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"^{module}\.{old} is now {new}$") as caught:
        found = getattr(home, old)
    assert found is getattr(home, new)
    assert [warning.filename for warning in caught] == [__file__]
    with sentences.raises(AttributeError):
        _ = home.nothing


def test_the_registry_knows_names_without_classes_and_gives_the_public_ones() -> None:
    assert len(ALGORITHMS) == len(list(ALGORITHMS))
    assert "nothing" not in ALGORITHMS
    assert {algorithm.__name__ for algorithm in ALGORITHMS.values()} < set(core.__all__)
