"""The image's `rankwright` command: a worker or dispatcher runs under a watch, everything else takes its place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import children_of, is_running
from tests.long_form import rest
from tests.waiting import eventually, patience

ROOT = Path(__file__).parents[2]


def begin(tmp_path: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Run the command as in a container, with this checkout in the place of the image's code."""
    script = tmp_path / "rankwright"
    script.write_text((ROOT / "deploy" / "rankwright").read_text().replace("/app/", f"{ROOT}/"))
    kept = {name: text for name, text in os.environ.items() if not name.startswith("RANKWRIGHT_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.Popen(
        ["sh", str(script), *words],
        env=kept | {"PATH": path, "PYTHONPATH": str(ROOT)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("command", "module"), [("dispatcher", "app.cli"), *rest(("worker", "workers"))]
)
def test_a_process_runs_under_its_watch_and_ends_when_told(
    sqlite_url: str, tmp_path: Path, command: str, module: str
) -> None:
    state = tmp_path / "state"
    given = {"RANKWRIGHT_DATABASE_URL": sqlite_url, "RANKWRIGHT_STATE_DIR": str(state)}
    with begin(tmp_path, command, RANKWRIGHT_WARM_UP="false", **given) as process:
        try:
            eventually((state / "blobs").exists)
            (child,) = children_of(process.pid)
            line = Path(f"/proc/{child}/cmdline").read_text().split("\0")
            assert module in line
            assert "--pulse" in line
            process.send_signal(signal.SIGTERM)
            assert process.wait(patience()) == 0
            assert not is_running(child)
        finally:
            process.kill()


def test_exit_codes_and_other_commands_are_passed_on(tmp_path: Path) -> None:
    for words, code in ((["worker"], 1), (["--version"], 0)):
        with begin(tmp_path, *words, RANKWRIGHT_WORKER_SLOTS="0") as process:
            assert process.wait(patience()) == code
            told = process.stdout.read() + process.stderr.read()
        assert ("RANKWRIGHT_WORKER_SLOTS" in told) == (code == 1)
