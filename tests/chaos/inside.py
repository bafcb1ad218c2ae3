"""The harness's code inside the processes of a deployment: each takes its orders before its first line.

`tests/chaos/site` is on their PYTHONPATH, so an environment variable arms every process when it starts, also those
that `serve` or a worker starts. No code of the service knows of this.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.chaos import mutants

FOLDER = "CHAOS_FOLDER"
MUTANTS = "CHAOS_MUTANTS"
FAULTS = "RANKWRIGHT_FAULTS"

_PYTHON_M = {"workers": "worker", "workers.child": "child"}
ROLES = ("api", "dispatcher", "worker", "child", "serve")


def role_of(command: Sequence[str]) -> str | None:
    """Return which process of the service this command line starts; None if it is another."""
    if "-m" not in command[:-1]:
        return None
    module, *rest = command[command.index("-m") + 1 :]
    role = rest[0] if module == "app.cli" and rest else _PYTHON_M.get(module)
    return role if role in ROLES else None


def environment(folder: Path, changes: Sequence[str]) -> Mapping[str, str]:
    """Return the variables by which a process, and all that it starts, take orders from the folder."""
    root = Path(__file__).parents[2]
    return {
        "PYTHONPATH": os.pathsep.join([str(root / "tests" / "chaos" / "site"), str(root)]),
        FOLDER: str(folder),
        MUTANTS: ",".join(changes),
    }


def orders_path(folder: Path, role: str) -> Path:
    """Return the path of a role's orders: a JSON list of faults, of which a process takes any one."""
    return folder / f"orders-{role}.json"


def take_orders() -> None:
    """Arm this process, if it belongs to a deployment and there are orders for it, and those that it forks."""
    if (folder := os.environ.get(FOLDER)) is None:
        return
    _arm(Path(folder), sys.orig_argv)
    for name in os.environ.get(MUTANTS, "").split(","):
        if name:
            mutants.install(name)
    run_module = runpy.run_module

    def run_armed(name: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        from app.platform import failpoints

        _arm(Path(folder), ["-m", *sys.argv])
        failpoints.armed = failpoints.parse(os.environ.get(FAULTS, ""))
        return run_module(name, *arguments, **options)

    runpy.run_module = run_armed  # type: ignore[assignment]


def _arm(folder: Path, command: Sequence[str]) -> None:
    os.environ.pop(FAULTS, None)  # the orders of the parent process were its own
    role = role_of(command)
    path = orders_path(folder, role or "")
    if role is not None and path.exists() and (orders := json.loads(path.read_text())):
        os.environ[FAULTS] = random.choice(orders)
