"""Processes that end with their parent: by the kernel where it can, by a guardian on a pipe elsewhere."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.platform import processes
from app.platform.logging import JsonFormatter, TextFormatter
from tests.harness import is_running
from tests.long_form import long_form, rest
from tests.waiting import eventually, patience

# A parent that starts a child by the words below, tells its pid and waits to be killed.
PARENT = """
import os, signal, subprocess, sys
reader, writer = os.pipe()
command = [word.format(parent=os.getpid(), pipe=reader) for word in sys.argv[1:]]
child = subprocess.Popen(command, pass_fds=[reader], process_group=0)
print(child.pid, flush=True)
signal.pause()
"""

BY_GUARDIAN = """
import sys, time
from app.platform import processes
processes.guard(int(sys.argv[1]))
print("guarded", flush=True)
time.sleep(600)
"""


def start(*command: str) -> tuple[subprocess.Popen[str], int]:
    """Start the parent with its child; returns the parent and the child's pid."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *command], stdout=subprocess.PIPE, text=True
    )
    return parent, int(parent.stdout.readline())


def name_of(pid: int) -> str:
    """The program that the process runs."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's rule is Linux's")
def test_a_command_under_the_rule_dies_with_its_parent() -> None:
    shim = [sys.executable, "-I", "-S", processes.__file__]
    parent, pid = start(*shim, "{parent}", "{pipe}", "sleep", "600")
    with parent:
        eventually(lambda: name_of(pid) == "sleep")
        parent.kill()
        eventually(lambda: not is_running(pid))


def test_a_guardian_kills_the_group_of_a_dead_parents_child() -> None:
    parent, pid = start(sys.executable, "-c", BY_GUARDIAN, "{pipe}")
    with parent:
        assert parent.stdout.readline() == "guarded\n"
        parent.kill()
        eventually(lambda: not is_running(pid))


def test_a_parent_that_is_gone_already_is_noticed() -> None:
    code = "from app.platform.processes import die_with_parent; die_with_parent(1); print('alive')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_command_that_is_not_there_is_named() -> None:
    done = subprocess.run(
        [sys.executable, processes.__file__, str(os.getpid()), "0", "no-such-command"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"no-such-command: {os.strerror(errno.ENOENT)}" in done.stderr


# A watch whose looks follow one another fast, over a command that tells its pid, and does what the test asks for.
WATCH = """
import sys
from app.platform import processes
processes.PULSE_SECONDS, processes.MISSED_PULSES = 0.02, 25
sys.exit(processes.watch([sys.executable, "-c", *sys.argv[1:]]))
"""
PATIENT_WATCH = WATCH.replace("25", "1_000_000")
"""Kills no process that a busy machine holds up."""
BEATING = """
import os, sys, time
from app.platform import processes
processes.PULSE_SECONDS = 0.02
processes.start_pulse(int(sys.argv[sys.argv.index("--pulse") + 1]))
print(os.getpid(), flush=True)
"""


@contextmanager
def watched(
    script: str, watch: str = PATIENT_WATCH, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A watch over a Python script; yields it and the pid of the script's process."""
    with subprocess.Popen(
        [sys.executable, "-c", watch, script],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def test_a_process_that_stops_responding_is_killed_and_its_watch_ends() -> None:
    with watched(BEATING + "time.sleep(600)", WATCH) as (watch, pid):
        os.kill(pid, signal.SIGSTOP)
        assert watch.wait(patience()) == 1
        assert not is_running(pid)
        assert len(watch.stderr.read().splitlines()) == 1


@pytest.mark.parametrize(
    ("log_format", "formatter"), [("json", JsonFormatter()), *rest(("text", TextFormatter()))]
)
def test_a_line_of_the_watch_looks_like_each_line_of_the_log(
    log_format: str, formatter: logging.Formatter
) -> None:
    script = BEATING + "time.sleep(600)"
    with watched(script, WATCH, RANKWRIGHT_LOG_FORMAT=log_format) as (watch, pid):
        os.kill(pid, signal.SIGSTOP)
        line = watch.stderr.read().removesuffix("\n")
    if log_format == "json":
        assert json.loads(line)["pid"] == watch.pid
    message = (
        line.rpartition("rankwright ")[2] if log_format == "text" else json.loads(line)["message"]
    )
    record = logging.LogRecord("rankwright", logging.ERROR, "", 0, message, (), None)
    expected = formatter.format(record)
    assert re.sub(r"\d+", "0", line) == re.sub(r"\d+", "0", expected)


@long_form
@pytest.mark.parametrize(
    "words", [["dispatcher"], ["worker"], ["worker", "--join", "tls://127.0.0.1:9"]]
)
def test_each_process_that_is_watched_has_a_pulse(
    sqlite_url: str, tmp_path: Path, words: list[str]
) -> None:
    given = {"RANKWRIGHT_DATABASE_URL": sqlite_url, "RANKWRIGHT_STATE_DIR": str(tmp_path / "state")}
    reader, writer = os.pipe()
    command = [*processes.python_command("app.cli", *words), "--pulse", str(writer)]
    with subprocess.Popen(
        command, env=processes.child_environment() | given, pass_fds=[writer]
    ) as process:
        os.close(writer)
        try:
            assert os.read(reader, 1) == b"."
        finally:
            process.kill()
            os.close(reader)


def test_a_watch_ends_as_its_process_does() -> None:
    with watched(BEATING + "sys.exit(7)") as (watch, _):
        assert watch.wait(patience()) == 7
    with watched(BEATING + "time.sleep(600)") as (watch, pid):
        os.kill(pid, signal.SIGKILL)
        assert watch.wait(patience()) == 128 + signal.SIGKILL
    stop = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
    # Short pauses: a signal just before a long one would be handled after it.
    with watched(stop + BEATING + "while True: time.sleep(0.01)") as (watch, pid):
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(patience()) == 5
    with watched(BEATING + "time.sleep(600)") as (watch, pid):
        watch.kill()
        eventually(lambda: not is_running(pid))


def test_a_pulse_is_missed_by_looks_and_only_after_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "PULSE_SECONDS", 0.0)
    monkeypatch.setattr(processes, "MISSED_PULSES", 3)
    pulse = processes.PulseReader()
    assert not any(pulse.is_unresponsive() for _ in range(10))  # it has not begun
    os.write(pulse.writer, b"..")
    assert [pulse.is_unresponsive() for _ in range(4)] == [False, False, False, True]
    os.write(pulse.writer, b".")
    assert not pulse.is_unresponsive()
    monkeypatch.setattr(processes, "PULSE_SECONDS", 3600.0)
    assert not pulse.is_unresponsive()
    assert not any(pulse.is_unresponsive() for _ in range(10))  # too early to look again
    pulse.close_writer()
    pulse.close()
