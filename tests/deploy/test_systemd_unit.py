"""deploy/rankwright.service: systemd accepts it, its command and settings are ours, and its processes are confined."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from app.cli import commands
from app.platform.settings import Settings
from app.serve import supervisor

FILE = Path(__file__).parents[2] / "deploy" / "rankwright.service"
MAX_EXPOSURE = 25
"""In tenths of systemd's own scale, on which 10 is a service that is not closed in at all."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (no running systemd)"
)


@pytest.fixture
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(FILE.read_text())
    return unit["Service"]


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Ask systemd-analyze."""
    command = ["systemd-analyze", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_systemd
def test_systemd_takes_every_line(tmp_path: Path) -> None:
    here = tmp_path / FILE.name
    program = Path(sys.executable).with_name("rankwright")
    here.write_text(FILE.read_text().replace("/opt/rankwright/bin/rankwright", str(program)))
    done = analyze("verify", here)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    here.write_text(here.read_text().replace("ProtectHome=", "ProtectHomes="))
    assert "ProtectHomes" in analyze("verify", here).stderr


@needs_systemd
def test_it_is_closed_in() -> None:
    done = analyze("security", "--offline=true", f"--threshold={MAX_EXPOSURE}", FILE)
    assert done.returncode == 0, done.stdout


def test_its_command_is_one_of_ours(service: configparser.SectionProxy) -> None:
    program, name, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/rankwright")
    commandline = typer.main.get_command(commands())
    command = commandline.commands[name]  # type: ignore[attr-defined]
    given = command.make_context(name, words).params
    assert (name, given["host"], given["port"]) == ("serve", "127.0.0.1", 8000)


def test_its_settings_are_ours_and_lie_in_its_own_folders(
    service: configparser.SectionProxy,
) -> None:
    given = dict(pair.split("=", 1) for pair in shlex.split(service["Environment"]))
    assert given.pop("PYTHONSAFEPATH") == "1"  # no import from the folder of state
    assert {name.removeprefix("RANKWRIGHT_").lower() for name in given} <= set(
        Settings.model_fields
    )
    assert given["RANKWRIGHT_STATE_DIR"] == f"%S/{service['StateDirectory']}"
    assert given["RANKWRIGHT_KERNEL_CACHE"] == f"%C/{service['CacheDirectory']}"
    assert service["StateDirectoryMode"] == "0700"


def test_it_ends_in_order_and_comes_back(service: configparser.SectionProxy) -> None:
    assert service["Restart"] == "always"
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
    assert int(service["TimeoutStopSec"]) > supervisor.GRACE_SECONDS


def test_it_may_compile_kernels(service: configparser.SectionProxy) -> None:
    """Compiled code is written and then run: systemd could forbid that, and the first fit would crash."""
    assert "MemoryDenyWriteExecute" not in service
    assert not re.search(r"~\s*@(?:resources|memlock)", service["SystemCallFilter"])
