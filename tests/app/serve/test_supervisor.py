"""`rankwright serve` as a user runs it: one command, one folder, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from app.platform import migrate
from app.platform.metrics import SHARED_BYTES
from app.platform.processes import SignalWaiter
from app.platform.resources import free_bytes, keep_reserve
from app.platform.settings import Settings
from app.platform.state_folder import make_private
from app.serve import ServeError
from app.serve import supervisor as supervision
from tests.app.live_service import running
from tests.harness import children_of, give_kernels, is_running, run_here
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences
from tests.waiting import eventually, patience

SERVE = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--state-dir"]


class Serve:
    """A running `rankwright serve`. Its output goes to a file, or to a terminal of its own."""

    def __init__(self, state: Path, log: Path, *, terminal: bool = False, **variables: str) -> None:
        self.state = state
        self.log = log
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RANKWRIGHT_")}
        quick = {
            "RANKWRIGHT_HEARTBEAT_SECONDS": "0.3",
            "RANKWRIGHT_LEASE_SECONDS": "2",
            "RANKWRIGHT_REAP_SECONDS": "0.3",
            "RANKWRIGHT_WARM_UP": "false",
        }
        self.compiled: list[Path] = []  # kernels that were there when it was ready
        self.screen: int | None = None
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if terminal:
            os.close(out)
            self.screen, out = os.openpty()
        self.process = subprocess.Popen(
            [*SERVE, str(state)], stdout=out, stderr=out, env=environment | quick | variables
        )
        os.close(out)

    @property
    def output(self) -> str:
        """Return what it has printed so far."""
        if self.screen is not None:
            with self.log.open("ab") as log:
                while select.select([self.screen], [], [], 0)[0]:
                    try:
                        log.write(os.read(self.screen, 4096))
                    except OSError:  # nobody holds its other end any more
                        os.close(self.screen)
                        self.screen = None
                        break
        return self.log.read_text()

    def ready(self) -> str:
        """Wait until it says that it is ready; returns its address."""

        def address() -> str | None:
            assert self.process.poll() is None, self.output
            found = re.search(r"^ready at (\S+),", self.output, re.MULTILINE)
            return found.group(1) if found else None

        found: str = eventually(address)
        return found

    def family(self) -> dict[str, int]:
        """The pids of everything it started, by name."""
        found = {}
        for pid in children_of(self.process.pid):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            names = {"workers": "worker", "workers.child": "fit", "api": "api"}
            name = next((names[word] for word in line if word in names), "broker")
            if "--number" in line:
                name += " " + line[line.index("--number") + 1]
            found[name] = pid
            for number, child in enumerate(children_of(pid)):
                found[f"{name}/{number}"] = child
        return found

    def client(self) -> httpx.Client:
        """Return what asks it, with the first key."""
        key = (self.state / "api-key").read_text().strip()
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.ready(), headers=headers, timeout=patience())

    def get(self, path: str) -> httpx.Response:
        """Return the answer to one request with the first key."""
        with self.client() as client:
            return client.get(path)

    def kill(self) -> None:
        """Kill it, and wait for the end of what it started, which ends by itself. Does nothing once it has ended."""
        family = self.family()
        self.process.kill()
        self.process.wait()
        eventually(lambda: not any(map(is_running, family.values())))


class SharedServe:
    """One `serve` for several tests. After a test that ends it, the next that needs one has another."""

    def __init__(self, make_folder: Callable[[str], Path]) -> None:
        self._make_folder = make_folder
        self._serve: Serve | None = None

    def get(self) -> Serve:
        """Return one that runs, with two API processes. At its start it had no kernels."""
        if self._serve is None or self._serve.process.poll() is not None:
            folder = self._make_folder("served")
            kernels = folder / "kernels"
            self._serve = Serve(
                folder / "state",
                folder / "log",
                RANKWRIGHT_KERNEL_CACHE=str(kernels),
                RANKWRIGHT_PROCESSES="2",
            )
            self._serve.ready()
            self._serve.compiled = list(kernels.glob("*.kernel"))
            give_kernels(kernels)
        return self._serve

    def close(self) -> None:
        """End it if it runs."""
        if self._serve is not None:
            self._serve.kill()


@pytest.fixture(scope="module")
def shared_serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServe]:
    """Starts no `serve` before a test needs one."""
    shared = SharedServe(tmp_path_factory.mktemp)
    yield shared
    shared.close()


@pytest.fixture
def served(shared_serve: SharedServe) -> Serve:
    """A running `serve`, which other tests have used, too."""
    return shared_serve.get()


def tcp_sockets(pid: int) -> set[str]:
    """The local addresses of the process's TCP sockets."""
    links = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            links.append(os.readlink(descriptor))
    inodes = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return {line[1] for line in lines if line[9] in inodes}


@long_form
def test_nothing_is_compiled_before_it_is_ready(served: Serve) -> None:
    assert served.compiled == []


def test_it_says_where_it_answers_and_keeps_the_first_key(served: Serve) -> None:
    address = served.ready()
    assert (served.state / "address").read_text() == address + "\n"
    assert served.get("/health/ready").status_code == 200
    assert f"{address}/docs" in served.output
    key_file = served.state / "api-key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    # Others may read a journal or a log file: it names the file of the key, and does not show the key.
    assert key_file.read_text().strip() not in served.output
    assert f"first key: in {key_file}\n" in served.output
    assert f"console: {address}/console\n" in served.output
    assert served.get("/v1/jobs").status_code == 200
    # A second one with its folder is refused.
    second = run_here("serve", "--port", "0", RANKWRIGHT_STATE_DIR=str(served.state))
    assert second.returncode == 1
    assert f"(pid {served.process.pid})" in second.stderr
    assert "Traceback" not in second.stderr
    assert served.get("/health/live").status_code == 200


def test_a_state_folder_that_existed_is_closed_or_refused(
    tmp_path: Path, sentences: Sentences
) -> None:
    """Whoever may enter it reads the database."""
    for mode in (0o755, 0o750, 0o711, 0o770):
        state = tmp_path / f"{mode:o}"
        state.mkdir()
        state.chmod(mode)
        make_private(state)
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        (state / "rankwright.db").touch()
        make_private(state)
        state.chmod(mode)
        with sentences.raises(ServeError):
            supervision.serve("127.0.0.1", 0, Settings(state_dir=state))
        done = run_here("migrate", RANKWRIGHT_STATE_DIR=str(state))
        assert done.returncode == 1
        assert f"mode 0700, got {mode:04o}" in done.stderr
        assert stat.S_IMODE(state.stat().st_mode) == mode
        assert [path.name for path in state.iterdir()] == ["rankwright.db"]


def test_a_first_key_is_shown_on_a_terminal_alone(tmp_path: Path, sentences: Sentences) -> None:
    path = tmp_path / "api-key"
    sentences(supervision.describe_first_key("rw_secret", path, shown=True))
    assert "rw_secret" not in supervision.describe_first_key("rw_secret", path, shown=False)


def test_the_broker_listens_on_its_socket_alone(served: Serve) -> None:
    named = {"broker", "worker", "api 1", "api 2"}
    eventually(lambda: named <= set(served.family()))  # a test may have killed some of them
    family = served.family()
    assert not tcp_sockets(family["broker"])
    assert tcp_sockets(family["api 1"]) & tcp_sockets(family["api 2"])


def test_it_seals_the_audit_log(served: Serve) -> None:
    with served.client() as client:
        made = client.post("/v1/keys", json={"name": "sealed", "scopes": ["read"]})
        assert made.status_code == 201
        lines = {"Accept": "application/x-ndjson"}  # sealed entries alone
        eventually(lambda: made.json()["id"] in client.get("/v1/audit", headers=lines).text)
    with contextlib.closing(sqlite3.connect(served.state / "rankwright.db")) as database:
        assert database.execute("SELECT count(*) FROM audit_seals").fetchone()[0] > 0


@long_form
def test_what_dies_is_started_again_and_jobs_are_served(served: Serve) -> None:
    before = served.family()
    killed = ("worker", "broker", "api 1", "api 2")
    for name in killed:
        os.kill(before[name], signal.SIGKILL)

    def all_new() -> bool:
        now = served.family()
        return all(now.get(name, pid) != pid for name, pid in before.items() if "/" not in name)

    eventually(all_new)
    eventually(
        lambda: served.output.count("was killed by SIGKILL; it will be restarted") == len(killed)
    )
    with served.client() as client:
        # The port stayed the supervisor's, so this request waited for the new API.
        assert client.get("/v1/jobs").status_code == 200
        answer = client.post(
            "/v1/datasets?name=t&label=y&positive=1",
            content=b"x,y\n1,0\n2,1\n3,0\n4,1\n",
            headers={"Content-Type": "text/csv"},
        )
        dataset = f"/v1/datasets/{answer.json()['id']}"
        eventually(lambda: client.get(dataset).json()["status"] == "ready")
        eventually(lambda: client.get("/health/staffed").is_success)


@long_form
def test_what_stops_responding_is_replaced_and_its_job_is_run_once(served: Serve) -> None:
    frozen = ("worker",)
    # A test before may have killed some: they have begun when all is well.
    with served.client() as client:
        eventually(lambda: client.get("/health/staffed").is_success)
        before, told = served.family(), served.output.count("does not respond; killing it")
        for name in frozen:
            os.kill(before[name], signal.SIGSTOP)

        def upload() -> httpx.Response | None:
            answer = client.post(
                "/v1/datasets?name=frozen&label=y&positive=1",
                content=b"x,y\n1,0\n2,1\n3,0\n4,1\n",
                headers={"Content-Type": "text/csv"},
            )
            return answer if answer.status_code == 202 else None

        answer = eventually(upload)  # the frozen worker may hold the lock of the database
        dataset = f"/v1/datasets/{answer.json()['id']}"
        eventually(lambda: client.get(dataset).json()["status"] == "ready")
        eventually(lambda: client.get("/health/staffed").is_success)
        now = served.family()
        assert all(now[name] != before[name] and not is_running(before[name]) for name in frozen)
        assert served.output.count("does not respond; killing it") > told
        assert [now[name] for name in ("api 1", "api 2")] == [
            before[name] for name in ("api 1", "api 2")
        ]


@long_form  # a worker that stops responding is replaced by the same rule, though told by another sign
def test_an_api_process_that_stops_responding_is_replaced(served: Serve) -> None:
    eventually(lambda: served.get("/health/staffed").is_success)
    before = served.family()
    os.kill(before["api 1"], signal.SIGSTOP)
    eventually(lambda: served.family().get("api 1") not in {None, before["api 1"]})
    assert not is_running(before["api 1"])
    now = served.family()
    assert (now["api 2"], now["worker"]) == (before["api 2"], before["worker"])


@long_form
def test_a_killed_serve_leaves_nothing_and_its_successor_ends_when_asked_even_twice(
    served: Serve,
) -> None:
    key = (served.state / "api-key").read_text()
    family = served.family()
    served.kill()
    eventually(lambda: not any(map(is_running, family.values())))

    again = Serve(served.state, served.log.with_name("log of the next"), terminal=True)
    try:
        address = again.ready()
        assert (again.state / "api-key").read_text() == key
        assert "first key" not in again.output
        eventually(lambda: f"console: {address}/console/sign-in?link=" in again.output)
        assert again.get("/v1/jobs").status_code == 200

        family = again.family()
        os.kill(family["worker"], signal.SIGSTOP)
        again.process.send_signal(signal.SIGTERM)
        eventually(lambda: not is_running(family["api"]))
        again.process.send_signal(signal.SIGINT)
        assert again.process.wait(patience()) == 0
    finally:
        again.kill()
    # A process that gets it ends at once.
    assert "worker did not stop" in again.output
    assert "Traceback" not in again.output
    assert not any(map(is_running, family.values()))
    assert not (again.state / "address").exists()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_here("serve", f"--port={port}", RANKWRIGHT_STATE_DIR=str(tmp_path / "state"))
    assert done.returncode == 1
    assert f"127.0.0.1 port {port}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only a user who may mount a disk can fill one")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@long_form
def test_it_starts_on_a_full_disk_and_scores(small_disk: Path, tmp_path: Path) -> None:
    state = small_disk / "state"
    first = Settings(state_dir=state, min_free_bytes=0)
    state.mkdir(mode=0o700)
    migrate.upgrade(first.sqlalchemy_url)
    with running(first) as service:
        (state / "api-key").write_text(secret := service.key("default"))
        client = service.client(secret)
        assert service.train(client, service.upload(client))["state"] == "succeeded"
    keep_reserve(state)
    with contextlib.suppress(OSError), (small_disk / "full").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert free_bytes(small_disk) == 0
    serve = Serve(state, tmp_path / "log")
    try:
        with serve.client() as client:
            answer = client.get("/v1/models/churn/score", params={"age": 1, "income": 1})
            assert answer.status_code == 200, answer.text
            upload = client.post("/v1/datasets?name=t&label=y", content=b"x,y\n1,0\n")
            assert (upload.status_code, upload.json()["code"]) == (507, "out_of_space")
    finally:
        serve.kill()


@pytest.mark.parametrize("full", [False, True])
def test_a_slow_start_is_told_and_waited_for_unless_no_job_would_be_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    said: list[str] = []
    word = (
        "a disk is nearly full: scoring continues, but jobs wait for the worker: no worker has sent a heartbeat"
        if full
        else "waiting for the worker: no worker has sent a heartbeat (scoring continues)"
    )

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            part = {"ok": False, "detail": "no worker has sent a heartbeat"}
            body = json.dumps({"parts": {"worker": part, "broker": {"ok": True, "detail": ""}}})
            well = self.path == "/health/ready" or (word in said and not full)
            self.send_response(200 if well else 503)
            self.end_headers()
            self.wfile.write(body.encode())

    monkeypatch.setattr(supervision, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(supervision, "print_line", said.append)
    settings = Settings(state_dir=tmp_path, min_free_bytes=1 << 62 if full else 0)
    with (
        HTTPServer(("127.0.0.1", 0), Api) as api,
        SignalWaiter([signal.SIGTERM, signal.SIGCHLD]) as signals,
    ):
        threading.Thread(target=api.serve_forever, daemon=True).start()
        supervisor = supervision.Supervisor(settings, [api.socket], signals, {signal.SIGTERM}, {})
        url = f"http://127.0.0.1:{api.server_port}/health/staffed"
        assert supervisor.watch_until_ready(url)
        supervisor.stop()
        api.shutdown()
    assert word in said  # an API that can answer is not enough by itself
    assert set(said) <= {"waiting for the API", word}


@contextlib.contextmanager
def supervisor_of(settings: Settings) -> Iterator[supervision.Supervisor]:
    """A supervisor that has started nothing yet."""
    with (
        SignalWaiter([signal.SIGTERM, signal.SIGCHLD]) as signals,
        supervision.listen("127.0.0.1", 0, settings.processes) as listeners,
    ):
        supervisor = supervision.Supervisor(settings, listeners, signals, {signal.SIGTERM}, {})
        try:
            yield supervisor
        finally:
            supervisor.stop()


def test_several_processes_need_space_for_their_metrics(small_disk: Path) -> None:
    folder = small_disk / "metrics"
    with (
        supervisor_of(Settings(state_dir=small_disk, processes=64)) as supervisor,
        raises(ServeError, 64, 64 * SHARED_BYTES, folder),
    ):
        supervisor.start_api(folder)


def test_folders_of_killed_processes_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long_ago = 1e9
    with supervision.metrics_folder() as used:
        (used / "histogram_1.db").write_bytes(b"x")
        killed, strange = tmp_path / f"{used.name}-killed", tmp_path / f"{used.name}-strange"
        killed.mkdir()
        (killed / "histogram_1.db").write_bytes(b"x")
        target = tmp_path / "of somebody else"
        target.mkdir()
        strange.symlink_to(target)
        for path in (used, killed, target):
            os.utime(path, (long_ago, long_ago))
        new = tmp_path / f"{used.name}-new"
        new.mkdir()  # another start has not locked it yet
        with supervision.metrics_folder() as other:
            left = {path.name for path in tmp_path.iterdir()}
            assert left == {p.name for p in (used, new, strange, target, other)}
            assert (used / "histogram_1.db").exists()
    assert {path.name for path in tmp_path.iterdir()} == {p.name for p in (new, strange, target)}


def test_folders_of_other_users_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with supervision.metrics_folder() as own:
        other = tmp_path / f"{own.name}-other"
    other.mkdir()
    os.utime(other, (1e9, 1e9))
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    with supervision.metrics_folder():
        assert other.is_dir()


def test_only_deaths_in_a_row_keep_a_process_from_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guardian, held = os.pipe()
    service = supervision.Service("api", ["true"], environment=os.environ, guardian_fd=guardian)

    def die() -> int:
        service.start()
        eventually(service.restart_if_due)
        return service.deaths

    try:
        assert [die() for _ in range(3)] == [1, 2, 3]
        monkeypatch.setattr(supervision, "STEADY_SECONDS", -1.0)
        assert [die() for _ in range(3)] == [1, 1, 1]
    finally:
        os.close(held)
        os.close(guardian)


@pytest.fixture
def answering() -> Iterator[str]:
    """The address of an API that answers whatever it is asked."""

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Api) as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{api.server_port}/health/live"
        api.shutdown()


def test_the_api_is_asked_without_a_proxy(
    tmp_path: Path, answering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with supervisor_of(Settings(state_dir=tmp_path)) as supervisor:
        assert becomes_ready(supervisor, answering)


def becomes_ready(supervisor: supervision.Supervisor, url: str) -> bool:
    """Watch until all is ready."""
    this = threading.get_ident()
    end = threading.Timer(patience(), signal.pthread_kill, (this, signal.SIGTERM))
    end.start()
    try:
        return supervisor.watch_until_ready(url)
    finally:
        end.cancel()


# An API process that begins to answer when a file is there.
LATE = "while [ ! -e {may} ]; do sleep 0.05; done; echo $$ > {pid}; exec sleep 60"


def test_several_processes_are_ready_when_each_answers(
    tmp_path: Path, answering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, may = tmp_path / "metrics", {number: tmp_path / f"may-{number}" for number in "12"}

    def command(*words: str) -> list[str]:
        number = words[words.index("--number") + 1]
        made = LATE.format(may=may[number], pid=folder / f"{number}.pid")
        return ["sh", "-c", made]

    monkeypatch.setattr(supervision, "python_command", command)
    may["1"].touch()
    with supervisor_of(Settings(state_dir=tmp_path, processes=2)) as supervisor:
        supervisor.start_api(folder)
        threading.Timer(0.5, may["2"].touch).start()
        assert becomes_ready(supervisor, answering)
        assert may["2"].exists()
        may["1"].unlink()
        pid = int((folder / "1.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert int((folder / "1.pid").read_text()) == pid  # what it wrote stays
        threading.Timer(0.5, may["1"].touch).start()
        assert becomes_ready(supervisor, answering)
        assert may["1"].exists()
