"""`rankwright serve`: lock, broker, tables, first key, processes; then supervision until a signal. Also `rankwright
api` when several processes share its port.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.platform import forking, processes, resources
from app.platform.errors import OutOfSpace
from app.platform.logging import line_of
from app.platform.processes import (
    PULSE_SECONDS,
    PulseReader,
    SignalWaiter,
    child_environment,
    python_command,
)
from app.platform.settings import Settings
from app.platform.state_folder import OpenToOthers, make_private
from app.serve import ServeError, broker
from app.serve.prepare import Preparation
from core.kernels.folders import n_compiled

ADDRESS = "address"
TICK_SECONDS = 0.05
ANSWER_SECONDS = 30.0
WAIT_SECONDS = 10.0  # between two messages about what is waited for
GRACE_SECONDS = 10.0
HURRIED_GRACE_SECONDS = 0.5
DEATHS_AT_START = 5
FIRST_BACKOFF = 0.1
MAX_BACKOFF_SECONDS = 10.0
STEADY_SECONDS = 30.0
FOR_API_AND_WORKER = (
    "app.models.service",
    "app.operations.dispatching",
    "app.platform.broker",
    "app.platform.database",
    "app.trash.service",
    "celery.app.amqp",
    "celery.worker",
    "kombu.transport.redis",
    "workers.attempt",
    "workers.slots",
    "workers.tasks",
)
_METRICS = "rankwright-api-metrics-"
_NEW_SECONDS = 60.0


def serve(host: str, port: int, settings: Settings) -> None:
    """Run the whole service until SIGINT, SIGTERM or SIGHUP. Raises `ServeError`."""
    state_dir = settings.state_dir.absolute()
    try:
        make_private(state_dir)
    except OpenToOthers as error:
        raise ServeError(str(error)) from error
    except OSError as error:
        raise _unusable(state_dir, error) from error
    stops = _stop_signals()
    environment = (
        # For people: successes are not logged here, unless they ask for it.
        {"RANKWRIGHT_LOG_LEVEL": "WARNING"}
        | child_environment()
        | {"RANKWRIGHT_STATE_DIR": str(state_dir)}
    )
    with ExitStack() as stack:
        # They end in reverse order: the lock is released when everything else has ended.
        stack.enter_context(state_lock(state_dir))
        (state_dir / ADDRESS).unlink(missing_ok=True)  # of a serve that was killed
        signals = stack.enter_context(SignalWaiter([*stops, signal.SIGCHLD]))
        listeners = stack.enter_context(listen(host, port, settings.processes))
        print_line(f"rankwright stores its state in {state_dir}")
        address = address_of(host, listeners[0])
        terminal = sys.stdout.isatty()
        preparation = stack.enter_context(Preparation(settings, link=terminal))
        supervisor = Supervisor(settings, listeners, signals, stops, environment)
        stack.callback(supervisor.stop)
        import_for(settings, *FOR_API_AND_WORKER)
        supervisor.start_broker(state_dir)
        supervisor.start_worker()
        supervisor.start_api(state_dir / "metrics")
        # After those two were forked, which do not need it, and while they import what only they need.
        if settings.warm_up:
            import_for_fits()
        prepared = preparation.result()
        supervisor.open_gate()
        resources.keep_reserve(state_dir, spare=resources.RESERVE_BYTES)
        if prepared.key is not None:
            print_line(describe_first_key(prepared.key, state_dir / "api-key", shown=terminal))
        if not supervisor.watch_until_ready(f"{address}/health/staffed"):
            return
        stack.enter_context(address_file(state_dir / ADDRESS, address))
        print_line(f"ready at {address}, documentation at {address}/docs, press Ctrl-C to stop")
        way_in = "" if prepared.link is None else f"/sign-in?link={prepared.link}"
        print_line(f"console: {address}/console{way_in}{' (signs in once)' if way_in else ''}")
        done, n_kernels = n_compiled(state_dir=state_dir) or (0, None)
        if settings.warm_up and done != n_kernels:
            print_line(
                "kernels for this machine are being compiled in the background, once; a job that needs one "
                "waits for it; `rankwright doctor` shows the progress"
            )
        supervisor.watch()


def serve_api(host: str, port: int, settings: Settings) -> None:
    """Run the API's processes until SIGINT, SIGTERM or SIGHUP. Raises `ServeError`."""
    stops = _stop_signals()
    with ExitStack() as stack:
        folder = stack.enter_context(metrics_folder())
        signals = stack.enter_context(SignalWaiter([*stops, signal.SIGCHLD]))
        listeners = stack.enter_context(listen(host, port, settings.processes))
        supervisor = Supervisor(settings, listeners, signals, stops, child_environment())
        stack.callback(supervisor.stop)
        import_for(settings)
        supervisor.start_api(folder)
        supervisor.open_gate()
        address = address_of(host, listeners[0])
        if supervisor.watch_until_ready(f"{address}/health/live"):
            print_line(f"{settings.processes} processes respond at {address}")
            supervisor.watch()


def import_for(settings: Settings, *modules: str) -> None:
    """Import modules that several processes need, and those of the API if there are several of them, so that the
    processes share them.
    """
    if forking.can_fork():
        with forking.importing():
            for name in (*modules, *(["app.main"] if settings.processes > 1 else [])):
                import_module(name)


def import_for_fits() -> None:
    """Import the modules that every fit process needs."""
    if forking.can_fork():
        with forking.importing():
            import_module("workers.fit_process").warm_up()


@contextmanager
def metrics_folder() -> Iterator[Path]:
    """Yield a new temporary folder, which is removed at the end; also remove those of killed processes.

    The folder is locked while this process lives, which shows that it is in use.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_METRICS}*"):
        _remove_unused(left)
    with tempfile.TemporaryDirectory(prefix=_METRICS) as name:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(descriptor)


def _remove_unused(folder: Path) -> None:
    """Remove a folder of this user if no process has its lock; a new one may not be locked yet."""
    with contextlib.suppress(OSError), ExitStack() as stack:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        stack.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or time.time() - status.st_mtime < _NEW_SECONDS:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)


def _stop_signals() -> set[signal.Signals]:
    stops = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as `nohup` sets it
        stops.add(signal.SIGHUP)
    return stops


def describe_first_key(key: str, path: Path, *, shown: bool) -> str:
    """Return the line about the first key. The secret is `shown` only on a terminal: a journal would keep it."""
    return f"first key: {key} (shown once; also in {path})" if shown else f"first key: in {path}"


@contextmanager
def state_lock(state_dir: Path) -> Iterator[None]:
    """Lock the folder for this process. Raises ServeError with the pid of the other `rankwright serve`."""
    # Children never inherit the descriptor (PEP 446), so none of them can outlive us as a holder.
    try:
        descriptor = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unusable(state_dir, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode().strip() or "unknown"
            raise ServeError(
                f"rankwright serve (pid {holder}) is already running on {state_dir}"
            ) from None
        resources.release_reserve(state_dir)  # before the first write
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
        resources.keep_reserve(state_dir)
    finally:
        os.close(descriptor)


def _unusable(state_dir: Path, error: OSError) -> ServeError:
    return ServeError(
        f"the state folder {state_dir} cannot be used: {error.strerror}; "
        "name one that this user may write to by --state-dir or RANKWRIGHT_STATE_DIR"
    )


def print_line(line: str) -> None:
    """Print a line immediately; as JSON if logs are JSON."""
    sys.stdout.write(line_of(line) + "\n")
    sys.stdout.flush()


@contextmanager
def listen(host: str, port: int, processes: int = 1) -> Iterator[list[socket.socket]]:
    """Open the API's sockets in this process, so that the port stays open and callers wait while the API restarts.

    On Linux, each process has its own socket, among which the kernel distributes connections. Processes that share one
    socket distribute a burst badly: the first one to wake accepts nearly all of it. Other systems do not distribute
    connections, so there is only one socket.
    """
    count = processes if sys.platform.startswith("linux") else 1
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServeError(f"cannot listen on {host}: {error.strerror}") from error

    def bind(place: Any, *options: int) -> socket.socket:
        listener = stack.enter_context(socket.socket(family, kind, protocol))
        for option in (socket.SO_REUSEADDR, *options):
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind(place)
        return listener

    with ExitStack() as stack:
        try:
            listeners = [bind(place)]
            if count > 1:
                # Sockets that share a port would share it with another service, too; the first one found it free.
                place = listeners[0].getsockname()
                listeners[0].close()
                listeners = [bind(place, socket.SO_REUSEPORT) for _ in range(count)]
            for listener in listeners:
                listener.listen(1024)
        except (OSError, OverflowError) as error:
            raise ServeError(f"cannot listen on {host} port {port}: {error}") from error
        yield listeners


def address_of(host: str, listener: socket.socket) -> str:
    """Return the base URL of the API, with the chosen port."""
    port = listener.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{name}]:{port}" if ":" in name and name[0] != "[" else f"http://{name}:{port}"


@contextmanager
def address_file(path: Path, address: str) -> Iterator[None]:
    """Write the address to a file in the state folder, and remove it after the block."""
    path.write_text(address + "\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


class Supervisor:
    """The child processes of one `serve` or `api`, in the order of their start. They stop in the opposite order."""

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[socket.socket],
        signals: SignalWaiter,
        stops: set[signal.Signals],
        environment: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._listeners = listeners
        self._signals = signals
        self._stops = stops
        self._environment = dict(environment)
        # Only this process has the writing end: when it ends, watchdogs notice, where the kernel cannot signal it.
        self._guardian_fd, self._held_fd = os.pipe()
        # Services import while the tables are prepared, and begin when the writing end is closed.
        self._gate_fd, self._closed_gate_fd = os.pipe()
        self._fits: forking.ForkServer | None = None
        self._broker: Service | None = None
        self._worker: Service | None = None
        self._api: list[Service] = []
        self._metrics_folder: Path | None = None  # where several API processes count together
        self._grace = GRACE_SECONDS

    def start_broker(self, state_dir: Path) -> None:
        """Start the private broker and wait until it responds, unless the settings name a broker."""
        self._environment["RANKWRIGHT_BROKER_URL"] = self._settings.celery_broker_url
        if self._settings.broker_url is not None:
            return
        path = broker.socket_path(state_dir)
        if path.parent != state_dir:
            broker.prepare_folder(path)
        broker.end_previous(path)
        self._environment["RANKWRIGHT_BROKER_URL"] = broker.url(path)
        log = state_dir / "broker.log"
        self._broker = self._service("broker", broker.command(broker.find_server(), path, log))
        self._broker.start()
        while not broker.is_answering(path):
            if not self._broker.running:
                raise ServeError(f"the broker did not start; see {log}")
            time.sleep(0.005)

    def start_worker(self) -> None:
        """Start the worker, which is also the dispatcher and waits at the gate. Its fit processes are forked here if
        possible, because it has threads.
        """
        options, descriptors = ["--gate", str(self._gate_fd)], [self._gate_fd]
        if forking.can_fork():
            self._fits = forking.ForkServer()
            descriptors.append(channel := self._fits.channel.fileno())
            options += ["--forks", str(channel)]
        command = python_command("workers", "--dispatcher", *options)
        self._worker = self._service("worker", command, *descriptors, has_pulse=True)
        self._worker.start()

    def start_api(self, metrics_folder: Path) -> None:
        """Start the API's processes, which wait at the gate. Several of them share the folder for their metrics."""
        count = self._settings.processes
        if count > 1:
            from app.platform import metrics

            try:
                metrics.prepare_shared(metrics_folder, count)
            except OSError as error:
                raise ServeError(
                    f"the metrics of {count} API processes need {count * metrics.SHARED_BYTES} bytes in "
                    f"{metrics_folder}: {error.strerror}"
                ) from error
            self._metrics_folder = metrics_folder
        for number in range(1, count + 1):
            name, options = "api", []
            if self._metrics_folder is not None:
                name = f"api {number}"
                options = ["--number", str(number), "--metrics-folder", str(metrics_folder)]
            descriptor = self._listeners[number % len(self._listeners)].fileno()
            sockets = ["--fd", str(descriptor), "--gate", str(self._gate_fd)]
            command = python_command("app.cli", "api", *options, *sockets)
            service = self._service(name, command, descriptor, self._gate_fd, has_pulse=True)
            self._api.append(service)
            service.start()

    def open_gate(self) -> None:
        """Open the gate, because the tables are ready."""
        os.close(self._closed_gate_fd)
        self._closed_gate_fd = -1

    def watch_until_ready(self, url: str) -> bool:
        """Supervise the processes until a GET of `url` returns 200 and each API process responds; returns False if a
        signal came first.

        There is no time limit, because stopping would only make a slow machine start again. If the disk is too full for
        any job, it is sufficient that the API responds: scoring needs no worker.
        """
        start = _ReadyCheck(url)
        next_word = time.monotonic() + WAIT_SECONDS
        while self._watch_once(TICK_SECONDS):
            for service in self._all():
                if service.deaths >= DEATHS_AT_START:
                    raise ServeError(f"the {service.name} does not start")
            start.look()
            waits_for, answers = start.seen
            if start.is_ready:
                if self._all_answer():
                    return True
                waits_for, answers = "the other API processes", True
            elif answers and self._is_out_of_space():
                print_line(
                    f"a disk is nearly full: scoring continues, but jobs wait for {waits_for}"
                )
                return True
            if time.monotonic() > next_word:
                meanwhile = " (scoring continues)" if answers else ""
                print_line(f"waiting for {waits_for}{meanwhile}")
                next_word = time.monotonic() + WAIT_SECONDS
        return False

    def _all_answer(self) -> bool:
        """Return True if each of several API processes has begun to respond; a single one is checked by the caller."""
        if self._metrics_folder is None:
            return True
        from app.platform import metrics

        pids = set(metrics.read_pids(self._metrics_folder).values())
        return all(service.pid in pids for service in self._api)

    def _is_out_of_space(self) -> bool:
        """Return True if a disk is full."""
        try:
            resources.check(self._settings)
        except OutOfSpace:
            return True
        return False

    def watch(self) -> None:
        """Restart processes that die, until a signal comes."""
        while self._watch_once(None):
            pass

    def stop(self) -> None:
        """Stop all processes: the API first, then the worker, the broker last. A second signal kills them."""
        drain = self._settings.drain_seconds
        worker, broker = (
            [] if service is None else [service] for service in (self._worker, self._broker)
        )
        for services, extra_seconds in ((self._api, drain), (worker, 0.0), (broker, 0.0)):
            for service in services:
                service.terminate()
            self._wait(services, extra_seconds)
            for service in services:
                if not service.kill():
                    print_line(f"the {service.name} did not stop in time and was killed")
        if self._fits is not None:
            self._fits.close()
        for descriptor in (self._gate_fd, self._closed_gate_fd):
            if descriptor >= 0:
                os.close(descriptor)
        os.close(self._held_fd)
        os.close(self._guardian_fd)

    def _wait(self, services: list[Service], extra_seconds: float) -> None:
        """Wait for the processes to end, at most the grace period and `extra_seconds`, or until a second signal."""
        deadline = time.monotonic() + self._grace + extra_seconds
        while any(service.running for service in services):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if self._wait_for_signals(left) & self._stops:
                self._grace = HURRIED_GRACE_SECONDS
                return

    def _watch_once(self, longest: float | None) -> bool:
        """Wait for a signal or the next restart; then kill processes that do not respond, and restart those that died.
        Returns False if a signal came.
        """
        pauses = [service.seconds_to_look() for service in self._all()]
        waits = [seconds for seconds in (longest, *pauses) if seconds is not None]
        if self._wait_for_signals(min(waits, default=None)) & self._stops:
            print_line("stopping")
            return False
        for service in self._all():
            if service.is_unresponsive():
                print_line(f"the {service.name} does not respond; killing it")
                service.kill_group()
            if (death := service.restart_if_due()) is not None:
                if self._fits is not None and service is self._worker:
                    self._fits.kill()
                print_line(f"the {service.name} {death}; it will be restarted")
        return True

    def _wait_for_signals(self, timeout: float | None) -> set[signal.Signals]:
        """Wait for signals, and meanwhile start the fit processes that the worker requests."""
        if self._fits is None:
            return self._signals.wait(timeout)
        found = self._signals.wait(timeout, self._fits)
        self._fits.serve()
        return found

    def _all(self) -> list[Service]:
        found = (self._broker, self._worker, *self._api)
        return [service for service in found if service is not None]

    def _service(
        self, name: str, command: list[str], *pass_fds: int, has_pulse: bool = False
    ) -> Service:
        """Return a child process with this supervisor's environment."""
        return Service(
            name,
            command,
            environment=self._environment,
            pass_fds=pass_fds,
            guardian_fd=self._guardian_fd,
            has_pulse=has_pulse,
        )


class Service:
    """A child process in its own process group. Start it from the main thread: the kernel ends it with that thread.

    `has_pulse` says that its command takes `--pulse` (`processes.start_pulse`).
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        guardian_fd: int,
        has_pulse: bool = False,
    ) -> None:
        self.name = name
        self._has_pulse = has_pulse
        self._pulse: PulseReader | None = None
        self.deaths = 0  # in a row: of one that ran for STEADY_SECONDS only the last counts
        self._command = list(command)
        self._environment = dict(environment)
        self._pass_fds = list(pass_fds)
        self._guardian_fd = guardian_fd
        self._process: forking.Process | None = None
        self._backoff = FIRST_BACKOFF
        self._started_at = 0.0
        self._start_at = 0.0

    @property
    def running(self) -> bool:
        """True if the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The pid of the process; None while it waits for its restart."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process."""
        command, pass_fds = self._command, self._pass_fds
        if self._has_pulse:
            if self._pulse is not None:
                self._pulse.close()
            self._pulse = PulseReader()
            command = [*command, "--pulse", str(self._pulse.writer)]
            pass_fds = [*pass_fds, self._pulse.writer]
        if not forking.can_fork_to(command):
            watchdog = [sys.executable, "-I", "-S", processes.__file__]
            command = [*watchdog, str(os.getpid()), str(self._guardian_fd), *command]
            pass_fds = [*pass_fds, self._guardian_fd]
        self._process = forking.start(command, environment=self._environment, pass_fds=pass_fds)
        if self._pulse is not None:
            self._pulse.close_writer()
        self._started_at = time.monotonic()

    def restart_if_due(self) -> str | None:
        """Restart a dead process after its pause. Returns how it died, once per death; else None."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._start_at:
                self.start()
            return None
        if (code := self._process.poll()) is None:
            return None
        self.kill_group()
        self._process = None
        if now - self._started_at > STEADY_SECONDS:
            self._backoff = FIRST_BACKOFF
            self.deaths = 0
        self.deaths += 1
        self._start_at = now + self._backoff
        self._backoff = min(2 * self._backoff, MAX_BACKOFF_SECONDS)
        return processes.describe_exit(code)

    def is_unresponsive(self) -> bool:
        """Return True if the process runs but has stopped responding."""
        return self.running and self._pulse is not None and self._pulse.is_unresponsive()

    def seconds_to_look(self) -> float | None:
        """Return the seconds until a dead process is restarted, or its pulse is checked; None if neither is due."""
        if self._process is None:
            return max(0.0, self._start_at - time.monotonic())
        return None if self._pulse is None else PULSE_SECONDS

    def terminate(self) -> None:
        """Send SIGTERM to the process."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> bool:
        """Kill the rest of the group; returns True if the process had ended by itself."""
        if self._process is None:
            return True
        ended = self._process.poll() is not None
        self.kill_group()
        # A process that is ending, thread by thread, cannot be waited for yet; its exit code is not that of the kill.
        ended = self._process.wait() != -signal.SIGKILL or ended
        self._process = None
        return ended

    def kill_group(self) -> None:
        """Kill the group, the process included."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: a group of zombies
            os.killpg(self._process.pid, signal.SIGKILL)


class _ReadyCheck:
    """Asks a URL of the API until it returns 200; for `/health/staffed`, until all components work.

    `is_ready` then is True. `seen` has what is still missing, and whether all components for scoring work.
    """

    def __init__(self, url: str) -> None:
        self.is_ready = False
        self.seen = ("the API", False)
        self._url = urlsplit(url)
        self._connection: socket.socket | None = None
        self._answer = b""
        self._asked_at = 0.0

    def look(self) -> None:
        """Ask, or look for the answer. This never waits, because dead processes and Ctrl-C must not wait for it."""
        try:
            if self._connection is None:
                self._ask()
            elif self._is_complete(self._connection):
                self._read()
                self.close()
        except OSError:
            self.seen = ("the API", False)
            self.close()

    def close(self) -> None:
        """Close the connection, if any."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self) -> None:
        place = self._url.hostname, self._url.port
        self._connection = socket.create_connection(place, ANSWER_SECONDS)  # of our own listener
        self._connection.sendall(
            f"GET {self._url.path} HTTP/1.1\r\nHost: {self._url.netloc}\r\nConnection: close\r\n\r\n".encode()
        )
        self._connection.setblocking(False)
        self._answer, self._asked_at = b"", time.monotonic()

    def _is_complete(self, connection: socket.socket) -> bool:
        with contextlib.suppress(BlockingIOError):
            while part := connection.recv(65536):
                self._answer += part
            return True
        if time.monotonic() > self._asked_at + ANSWER_SECONDS:
            raise TimeoutError
        return False

    def _read(self) -> None:
        head, _, body = self._answer.partition(b"\r\n\r\n")
        words = head.split(maxsplit=2)
        if words[1:2] == [b"200"]:
            self.is_ready = True
            return
        with contextlib.suppress(ValueError, LookupError, TypeError):
            parts = json.loads(body)["parts"]
            away = {name: part for name, part in parts.items() if not part["ok"]}
            missing = "; ".join(f"the {name}: {part['detail']}" for name, part in away.items())
            self.seen = (missing, away.keys() <= {"broker", "worker", "dispatcher", "disk"})
