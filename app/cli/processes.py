"""`rankwright serve | api | worker | dispatcher | migrate | health | keys`: run and manage the service."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer
from rankwright import printable

from app import __version__
from app.platform.processes import (
    MAX_API_PROCESSES,
    SignalWaiter,
    child_environment,
    python_command,
    raise_descriptor_limit,
    start_pulse,
    wait_until_closed,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from app.platform.database import Database
    from app.platform.settings import Settings

key_commands = typer.Typer(help="Create, list, rotate and revoke API keys.", no_args_is_help=True)

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Gate = Annotated[
    int | None,
    typer.Option(hidden=True, help="An inherited pipe; the process stops when it is closed."),
]
Pulse = Annotated[
    int | None, typer.Option(hidden=True, help="An inherited pipe to which heartbeats are written.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")]


def _read_processes(text: str) -> int:
    """Raises typer.BadParameter."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_API_PROCESSES:
        raise typer.BadParameter(
            f"must be a whole number from 1 to {MAX_API_PROCESSES}, got {text[:100]!r}"
        )
    return int(text)


Processes = Annotated[
    int | None,
    typer.Option(
        parser=_read_processes,
        metavar="N",
        help="Number of API processes that share the port. Default: RANKWRIGHT_PROCESSES, otherwise 1.",
    ),
]


def fail(message: str) -> NoReturn:
    """Print a sentence, or JSON where logs are JSON; exit with 1."""
    from app.platform.logging import line_of

    typer.secho(line_of(message, logging.ERROR), fg=typer.colors.RED, err=True)
    raise typer.Exit(1)


class SettingsError(Exception):
    """Some settings are invalid; the message names each."""


def read_settings(state_dir: Path | None = None, processes: int | None = None) -> Settings:
    """Arguments take precedence. Raises `SettingsError`."""
    from pydantic import ValidationError

    from app.platform import tracing
    from app.platform.settings import Settings

    given = {"state_dir": state_dir, "processes": processes}
    try:
        tracing.read_endpoint(os.environ)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    try:
        return Settings.model_validate({k: v for k, v in given.items() if v is not None})
    except ValidationError as error:
        raise SettingsError("; ".join(map(_describe, error.errors()))) from error


def _describe(error: ErrorDetails) -> str:
    """Name the variable, the rule and the value, which messages of our own validators already have."""
    said = error["msg"].removeprefix("Value error, ")
    got = "" if error["type"] == "value_error" else f", got {str(error['input'])[:100]!r}"
    return f"RANKWRIGHT_{str(error['loc'][0]).upper()}: {said}{got}"


def settings_of(state_dir: Path | None = None, processes: int | None = None) -> Settings:
    """Arguments take precedence. For an invalid setting, print the error and exit with 1."""
    try:
        return read_settings(state_dir, processes)
    except SettingsError as error:
        fail(str(error))


def _tell_version(asked: bool) -> None:
    """Print version and build, and exit."""
    if asked:
        from app.platform.settings import checked_build

        # Only this setting is read: `--version` must also answer if another setting is wrong.
        try:
            build = checked_build(os.environ.get("RANKWRIGHT_BUILD", ""))
        except ValueError as error:
            typer.echo(f"rankwright {__version__}")
            fail(f"RANKWRIGHT_BUILD: {error}")
        typer.echo(f"rankwright {__version__} (build {build})")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train, evaluate and serve rankers: models that put the likely positives at the top of a list."""


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of the service's state.", envvar="RANKWRIGHT_STATE_DIR"),
    ] = None,
    processes: Processes = None,
) -> None:
    """Run the whole service on this machine: API, worker, dispatcher and a private broker."""
    from app.serve import ServeError, supervisor

    try:
        supervisor.serve(host, port, settings_of(state_dir, processes))
    except (ServeError, OSError) as error:
        fail(str(error))


def api(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    processes: Processes = None,
    fd: Annotated[int | None, typer.Option(hidden=True, help="An inherited socket.")] = None,
    gate: Gate = None,
    number: Annotated[
        int, typer.Option(hidden=True, help="Number of this process, if there are several.")
    ] = 1,
    metrics_folder: Annotated[
        Path | None, typer.Option(hidden=True, help="Folder for the metrics of all processes.")
    ] = None,
    pulse: Pulse = None,
) -> None:
    """Run only the API."""
    import gc

    if pulse is not None:
        start_pulse(pulse)

    gc.disable()  # until all is imported: repeated collections take a seventh of the start
    settings = settings_of(None, processes)
    if fd is None and settings.processes > 1:
        gc.enable()
        from app.serve import ServeError, supervisor

        try:
            supervisor.serve_api(host, port, settings)
        except (ServeError, OSError) as error:
            fail(str(error))
        return
    from app.http.server import DrainingServer, server_config
    from app.main import app_factory
    from app.platform.installation import Incomplete
    from app.platform.schema import CannotBegin

    on_start = None
    if metrics_folder is not None:
        from app.platform import metrics

        try:
            metrics.share(metrics_folder, number)
        except OSError as error:
            fail(f"the metrics folder {metrics_folder} cannot be used: {error.strerror}")
        on_start = partial(metrics.write_pid, metrics_folder, number)
    if gate is not None:
        wait_until_closed(gate)
    try:
        app = app_factory()
    except (CannotBegin, Incomplete, OSError) as error:
        fail(str(error))
    raise_descriptor_limit()
    config = server_config(
        app,
        settings,
        host=host,
        port=port,
        log_config=None,  # ours stays
        timeout_graceful_shutdown=5,
    )
    server = DrainingServer(config, app.state.context.drain, settings.drain_seconds, on_start)
    for stop in (signal.SIGINT, signal.SIGTERM):  # a signal before the start is not a crash
        signal.signal(stop, server.end)
    server.run(sockets=None if fd is None else [socket.socket(fileno=fd)])
    if not server.started:
        raise typer.Exit(3)


def worker(
    join: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Take no jobs, but hold rows for the jobs of other workers, as a worker of the Dask cluster "
            "of this scheduler.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address on which a worker of a cluster listens. Default: 127.0.0.1."),
    ] = None,
    pulse: Pulse = None,
) -> None:
    """Run a worker. It takes jobs from the queue and runs each in a separate process."""
    if join is None and host is not None:
        raise typer.BadParameter(f"--host {host} requires --join: other workers do not listen")
    settings_of()  # reports a wrong setting in a sentence
    command = python_command("workers")
    if join is not None:
        from app.platform.settings import checked_scheduler

        try:
            address = checked_scheduler(join)
        except ValueError as error:
            raise typer.BadParameter(f"--join {error}") from error
        command = python_command("workers.join", address, "--host", host or "127.0.0.1")
    if pulse is not None:
        command += ["--pulse", str(pulse)]
    os.execve(command[0], command, child_environment())  # noqa: S606 - our own command


def dispatcher(pulse: Pulse = None) -> None:
    """Run the dispatcher. It requeues the jobs of lost workers, sends events to webhooks, runs schedules, seals the
    audit log and deletes expired data. One is enough; several are harmless.
    """
    from app.operations.dispatching import dispatcher_of
    from app.platform.logging import configure_logging
    from app.platform.schema import CannotBegin, SchemaCheck
    from app.platform.stores import open_store

    settings = settings_of()
    configure_logging(settings)
    if pulse is not None:
        start_pulse(pulse)
    # From here on a signal is handled: also one that comes before the work begins must end it cleanly.
    with (
        SignalWaiter([signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]) as signals,
        ExitStack() as stack,
    ):
        db = stack.enter_context(database(settings))
        try:
            if not SchemaCheck(db).wait(lambda seconds: bool(signals.wait(seconds))):
                return
            blobs = open_store(settings)
            blobs.check_writable()
        except (CannotBegin, OSError) as error:
            fail(str(error))
        run_until_signalled(dispatcher_of(db, blobs, settings).run, signals)


def run_until_signalled(work: Callable[[threading.Event], None], signals: SignalWaiter) -> None:
    """Run `work` in a thread until a signal sets its event. If it ends by itself, exit with code 1."""
    stop = threading.Event()

    def run() -> None:
        try:
            work(stop)
        finally:
            os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=run, name="work")
    thread.start()
    received = signals.wait()
    stop.set()
    thread.join()
    if signal.SIGUSR1 in received:
        raise typer.Exit(1)


def migrate(
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Change nothing, but wait until another process has migrated the tables to this version. Exits "
            "with 1 if they belong to a later version.",
        ),
    ] = False,
) -> None:
    """Migrate the tables of the database to this version."""
    if wait:
        _wait_for_migration()
        return
    from alembic.util import CommandError

    from app.platform.errors import ServiceError
    from app.platform.installation import Incomplete, check_files
    from app.platform.migrate import describe_failure, upgrade
    from app.platform.sql import DBAPIError
    from app.platform.state_folder import make_private

    settings = settings_of()
    try:
        check_files()
        if settings.database_url is None:
            make_private(settings.state_dir.absolute())
        upgrade(settings.sqlalchemy_url)
    except (Incomplete, ServiceError, OSError, DBAPIError, CommandError) as error:
        fail(describe_failure(error))


def _wait_for_migration() -> None:
    """Exit with 1 if the tables are later, or after a signal."""
    from app.platform.schema import CannotBegin, SchemaCheck

    with (
        SignalWaiter([signal.SIGINT, signal.SIGTERM]) as signals,
        database() as db,
    ):
        try:
            if not SchemaCheck(db).wait(lambda s: bool(signals.wait(s)), migrated=True):
                fail("stopped before the tables were migrated")
        except CannotBegin as error:
            fail(str(error))


@key_commands.command("create")
def create_key(
    owner: Annotated[
        str, typer.Option(help="Owner of the key. The key can use only this owner's resources.")
    ],
    name: Annotated[str, typer.Option(help="Name of the key, for your own use.")],
    scope: Annotated[
        list[str],
        typer.Option(
            help="Scope of the key: read, train, score, outcomes, approve, admin or operator. Repeat it for several."
        ),
    ],
    holder: Annotated[
        str | None,
        typer.Option(
            help="Id of the principal that the key is for: a person, a service account or a key. Without it, the key "
            "counts as another person."
        ),
    ] = None,
) -> None:
    """Create a key and print its secret. The secret is never shown again."""
    from app.access import service as keys

    with database() as db, keys.by_command(owner, "rankwright keys create"):
        key, secret = db.writing(keys.create, owner, name, scope, holder_id=holder)
    typer.echo(f"{key.id}  {' '.join(key.scopes)}", err=True)
    typer.echo(secret)


@key_commands.command("list")
def list_keys(owner: Annotated[str, typer.Option(help="Whose keys.")]) -> None:
    """List the keys of an owner, newest first."""
    from app.access import repository

    after = None
    with database() as db:
        while True:
            page = db.reading(repository.list_page, owner, limit=100, after=after)
            for key in page.data:
                state = "  revoked" if key.revoked_at is not None else ""
                if key.expires_at is not None:
                    state += f"  until {_time(key.expires_at)}"
                used = "never" if key.last_used_at is None else _time(key.last_used_at)
                scopes = ",".join(key.scopes)
                line = f"{key.id}  {key.prefix}…  {scopes}  {key.name}  used {used}{state}"
                typer.echo(printable.one_line(line))
            if (after := page.next) is None:
                return


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


@key_commands.command("rotate")
def rotate_key(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as shown by `keys list`.")],
    owner: Annotated[str, typer.Option(help="Owner of the key.")],
    grace_seconds: Annotated[
        float,
        typer.Option(
            help="Seconds for which the old key remains valid. 0: it is revoked immediately."
        ),
    ] = 0.0,
) -> None:
    """Replace a key with a new one and print the new secret. The secret is never shown again."""
    from app.access import service as keys

    with database() as db, keys.by_command(owner, "rankwright keys rotate"):
        key, secret = db.writing(keys.rotate, owner, key_id, grace_seconds)
    typer.echo(f"{key.id}  {' '.join(key.scopes)}", err=True)
    typer.echo(secret)


@key_commands.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as shown by `keys list`.")],
    owner: Annotated[str, typer.Option(help="Owner of the key.")],
) -> None:
    """Revoke a key. Every process rejects it within one second."""
    from app.access import service as keys

    with database() as db, keys.by_command(owner, "rankwright keys revoke"):
        db.writing(keys.revoke, owner, key_id)
    typer.echo(f"{key_id} is revoked")


@contextmanager
def database(settings: Settings | None = None) -> Iterator[Database]:
    """Open the database for a command. After a service error, print it and exit with 1."""
    from app.platform.database import open_database
    from app.platform.errors import ServiceError
    from app.platform.logging import configure_logging

    settings = settings or settings_of()
    configure_logging(settings)
    db = open_database(settings)
    try:
        yield db
    except ServiceError as error:
        fail(str(error))
    finally:
        db.close()


def health(
    process: Annotated[Literal["worker", "dispatcher"], typer.Argument(help="Which process.")],
) -> None:
    """Check that the worker or the dispatcher of this host works. For the API use /health/live and /health/ready."""
    from app.operations import self_check

    settings = settings_of()
    with database(settings) as db:
        if process == "worker":
            found = self_check.worker_problem(db, settings, socket.gethostname())
        else:
            found = self_check.dispatcher_problem(db, settings, socket.gethostname())
    if found is not None:
        fail(found)
    typer.echo("well")
