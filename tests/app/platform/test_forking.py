"""Processes that are forked from one that has imported their modules, and started anew where that is not possible."""

from __future__ import annotations

import errno
import json
import os
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.platform import forking
from tests.harness import is_running
from tests.waiting import eventually, patience

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux forks its processes"
)

# A module that writes what it is given, and that its parent may have imported.
MODULE = """
import gc, json, os, signal, sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    told = {
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "shown": Path("/proc/self/environ").read_bytes().decode(),
        "line": Path("/proc/self/cmdline").read_bytes().decode(),
        "descriptors": [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)],
        "handlers": [signal.getsignal(n) is signal.SIG_DFL for n in (signal.SIGTERM, signal.SIGHUP)],
        "blocked": len(mask),
        "group": os.getpgrp() == os.getpid(),
        "was_imported": "app.platform.text" in sys.modules,
    }
    Path(sys.argv[1]).write_text(json.dumps(told))
    sys.exit(3)
"""

PARENT = """
import os, signal, sys, threading
from app.platform import forking
from app.platform.processes import SignalWaiter, python_command
kind, module, told = sys.argv[1:]
with forking.importing():
    import app.platform.text, numpy
if kind == "threads":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
reader, writer = os.pipe()
secret = open(os.devnull)
with SignalWaiter([signal.SIGTERM, signal.SIGHUP]):
    environment = {"PATH": "/bin", "PYTHONPATH": os.environ["PYTHONPATH"], "GIVEN": "1"}
    process = forking.start(python_command(module, told, "word"), environment=environment, pass_fds=[writer])
    print(process.wait(), writer, secret.fileno())
"""


def told_by(tmp_path: Path, kind: str) -> tuple[dict[str, Any], int]:
    """What a child says of itself, and the descriptor that it was to inherit."""
    (tmp_path / "telling.py").write_text(MODULE)
    paths = [str(Path(__file__).parents[3]), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", PARENT, kind, "telling", str(tmp_path / "told")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "SECRET": "of the parent"},
        capture_output=True,
        text=True,
        check=True,
    )
    code, kept, _ = map(int, done.stdout.split())
    assert code == 3, done.stderr
    return json.loads((tmp_path / "told").read_text()), kept


@pytest.mark.parametrize("kind", ["alone", "threads"])
def test_a_child_is_as_if_it_was_started_anew(tmp_path: Path, kind: str) -> None:
    told, kept = told_by(tmp_path, kind)
    assert told["was_imported"] == (kind == "alone")
    assert told["arguments"] == [str(tmp_path / "told"), "word"]
    assert told["environment"]["GIVEN"] == "1"
    assert "SECRET" not in told["environment"]
    assert "SECRET" not in told["shown"]
    assert "GIVEN=1\0" in told["shown"]
    assert told["line"].startswith(f"{sys.executable}\0-P\0-m\0telling\0")
    assert sorted(told["descriptors"]) == [0, 1, 2, kept]
    assert told["handlers"] == [True, True]
    assert told["blocked"] == 0
    assert told["group"]


# A server, and a process that requests one of `sleep.py` from it, says its pid and its exit code.
SERVER = """
import os, signal, sys
from app.platform import forking
from app.platform.processes import SignalWaiter, python_command
with SignalWaiter([signal.SIGCHLD]) as signals:
    server = forking.ForkServer()
    command = python_command("requesting", str(server.channel.fileno()))
    worker = forking.start(command, environment=os.environ, pass_fds=[server.channel.fileno()])
    while worker.poll() is None:
        signals.wait(None, server)
        server.serve()
    server.kill()
    print("killed", flush=True)
    signal.pause()
"""

REQUESTING = """
import os, signal, sys
from app.platform import forking
reader, writer = os.pipe()
request = forking.request_from(int(sys.argv[1]))
environment = os.environ | {f"LARGE_{i}": i * 50_000 * "x" for i in range(5)}  # beyond a message of a socket
process = request("sleeping", writer, environment)
os.close(writer)
assert os.read(reader, 1) == b"."
assert process.poll() is None
print(process.pid, flush=True)
os.kill(process.pid, signal.SIGTERM)
print(process.wait(), process.poll(), flush=True)
again = request("sleeping", reader, os.environ)
print(again.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

SLEEPING = """
import os, signal, sys
assert int(sys.argv[2]) == os.getppid()
try:
    os.write(int(sys.argv[1]), b".")
except OSError:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pause()
"""


def test_processes_that_a_child_requests_are_reported_and_end_with_it(tmp_path: Path) -> None:
    for name, code in (("requesting", REQUESTING), ("sleeping", SLEEPING)):
        (tmp_path / f"{name}.py").write_text(code)
    paths = [str(Path(__file__).parents[3]), str(tmp_path)]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        first = int(server.stdout.readline())
        assert server.stdout.readline() == "-15 -15\n"
        assert not is_running(first)
        second = int(server.stdout.readline())
        assert server.stdout.readline() == "killed\n"
        assert not is_running(second)
    finally:
        server.kill()
        server.wait(patience())


def test_a_forked_child_ends_with_its_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "sleeping.py").write_text("import signal\nsignal.pause()\n")
    paths = [str(Path(__file__).parents[3]), str(tmp_path)]
    code = (
        "import os, signal, subprocess\nfrom app.platform import forking\n"
        "from app.platform.processes import python_command\n"
        "process = forking.start(python_command('sleeping'), environment=os.environ, pass_fds=[])\n"
        "try: process.wait(0.01)\n"
        "except subprocess.TimeoutExpired: print(process.pid, flush=True)\n"
        "signal.pause()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    parent.kill()
    parent.wait()
    eventually(lambda: not is_running(pid))


def test_who_requests_a_process_that_cannot_be_started_has_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(forking, "start", refuse)
    server = forking.ForkServer()
    request = forking.request_from(os.dup(server.channel.fileno()))
    with ThreadPoolExecutor(1) as pool, open(os.devnull) as inherited:
        requested = pool.submit(request, "sleeping", inherited.fileno(), {})
        while not requested.done():
            select.select([server], [], [], 0.01)
            server.serve()
    with pytest.raises(ChildProcessError):
        requested.result()
    server.close()
