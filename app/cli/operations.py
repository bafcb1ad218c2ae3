"""`rankwright backup | restore | doctor | quotas`: back up and restore state, examine it, and limit owners."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.processes import SettingsError, database, fail, read_settings, settings_of

if TYPE_CHECKING:
    from app.access.quotas import Limits
    from app.operations.doctor import Finding
    from app.platform.settings import Settings

StateDir = Annotated[
    Path | None, typer.Option(help="Folder of the service's state.", envvar="RANKWRIGHT_STATE_DIR")
]


quota_commands = typer.Typer(help="List, show and set the limits of owners.", no_args_is_help=True)

Owner = Annotated[str, typer.Argument(help="The owner.")]


def _limit(help_text: str, least: int = 0) -> Any:
    return typer.Option(min=least, max=2**53, help=help_text)


@quota_commands.command("list")
def list_quotas() -> None:
    """List the owners with individual limits, the last changed first. The settings apply to all others."""
    from app.access import quotas, repository

    after = None
    with database() as db:
        while True:
            page = db.reading(repository.list_quotas, limit=100, after=after)
            for row in page.data:
                typer.echo(f"{row.owner}  {_in_words(quotas.limits_in(row))}")
            if (after := page.next) is None:
                return


def _in_words(limits: Limits) -> str:
    found = asdict(limits).items()
    return "  ".join(f"{name}={limit}" for name, limit in found if limit is not None)


@quota_commands.command("show")
def show_quotas(owner: Owner) -> None:
    """Show what an owner uses, and its limits. A limit marked with * is the owner's own, not a setting."""
    from app.access import quotas, usage
    from app.platform.errors import check_name

    settings = settings_of()
    with database(settings) as db:
        check_name("owner", owner)
        own = asdict(db.reading(quotas.set_by_operator, owner))
        limits = asdict(db.reading(quotas.limits_of, settings, owner))
        used = db.reading(
            lambda session: quotas.usage_of(session, owner, usage.measure(session, owner))
        )
    for name, value in asdict(used).items():
        limit = "no limit" if limits[name] is None else str(limits[name])
        typer.echo(f"{name:<12}  {value} of {limit}{'' if own[name] is None else ' *'}")


@quota_commands.command("set")
def set_quotas(
    owner: Owner,
    stored_bytes: Annotated[
        int | None, _limit("Bytes in files and deletable database rows.")
    ] = None,
    dataset_rows: Annotated[int | None, _limit("Rows of all datasets.")] = None,
    models: Annotated[int | None, _limit("Models and unfinished training jobs.")] = None,
    aliases: Annotated[int | None, _limit("Aliases of models.")] = None,
    keys: Annotated[int | None, _limit("Valid keys.")] = None,
    queued_jobs: Annotated[int | None, _limit("Queued jobs.")] = None,
    running_jobs: Annotated[int | None, _limit("Running jobs and parts of jobs.", 1)] = None,
) -> None:
    """Replace all limits of an owner. A limit that is not given is again that of the settings. Nothing is deleted: a
    limit below what the owner has only blocks what is new.
    """
    from app.access import quotas
    from app.access.service import by_command

    limits = quotas.Limits(
        stored_bytes, dataset_rows, models, aliases, keys, queued_jobs, running_jobs
    )
    with database() as db, by_command(owner, "rankwright quotas set"):
        db.writing(quotas.replace, owner, limits)
    typer.echo(f"{owner}  {_in_words(limits) or 'has no individual limits'}")


def backup(
    target: Annotated[
        Path,
        typer.Argument(
            help="New folder, or a tar file if the name ends in .tar. With --keep: an existing folder of backups."
        ),
    ],
    *,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Create a tar file named after the time in TARGET, and delete all but the newest KEEP ones.",
        ),
    ] = None,
    state_dir: StateDir = None,
) -> None:
    """Back up database and blobs, and verify the backup. The service may run. A backup of a state folder contains its
    keys. Otherwise the command prints which keys you must keep beside the backup.
    """
    from alembic.util import CommandError

    from app.operations.backup import BackupError, back_up, back_up_and_prune
    from app.operations.doctor import size
    from app.platform.errors import ServiceError
    from app.platform.migrate import describe_failure
    from app.platform.sql import DBAPIError

    settings = settings_of(state_dir)
    try:
        if keep is None:
            made = back_up(settings, target)
        else:
            target, made = back_up_and_prune(settings, target, keep)
    except (BackupError, ServiceError, OSError, DBAPIError, CommandError) as error:
        fail(describe_failure(error))
    typer.echo(f"{target}: the database and {made.blobs} blobs, {size(made.bytes)}, verified")
    if made.keys_beside:
        typer.echo(f"keep beside it: the keys {made.keys_beside}")
    if made.missing:
        fail(
            f"{len(made.missing)} blobs that the database refers to are missing or damaged, and are not in "
            f"the backup: {', '.join(made.missing[:5])}"
        )


def restore(
    source: Annotated[
        Path,
        typer.Argument(
            exists=True, help="Backup: a folder or tar file that `rankwright backup` created."
        ),
    ],
    *,
    without_keys: Annotated[
        bool,
        typer.Option(
            "--without-keys",
            help="Restore although keys are missing that decrypt stored secrets or verify the audit log.",
        ),
    ] = False,
    state_dir: StateDir = None,
) -> None:
    """Restore a backup into a new or empty state folder, or into an empty PostgreSQL database and the blob store."""
    from alembic.util import CommandError

    from app.operations.backup import BackupError
    from app.operations.backup import restore as restore_backup
    from app.platform.errors import ServiceError
    from app.platform.migrate import describe_failure
    from app.platform.sql import DBAPIError

    settings = settings_of(state_dir)
    if settings.database_file is not None and (
        settings.database_url is not None or (settings.blob_url or "").startswith("file:")
    ):
        fail(
            "a backup of SQLite is restored into a state folder: "
            "unset RANKWRIGHT_DATABASE_URL and RANKWRIGHT_BLOB_URL"
        )
    try:
        made = restore_backup(source, settings, without_keys=without_keys)
    except (BackupError, ServiceError, OSError, DBAPIError, CommandError) as error:
        fail(describe_failure(error))
    if settings.database_file is None:
        typer.echo(
            f"the database has the state of {made.made_at}: run `rankwright migrate`, and start the service"
        )
    else:
        typer.echo(
            f"{settings.state_dir.absolute()} has the state of {made.made_at}: start it with `rankwright serve`"
        )


def copy_blobs(
    source: Annotated[
        Path, typer.Argument(help="Folder with the blobs, such as .rankwright/blobs.")
    ],
    state_dir: StateDir = None,
) -> None:
    """Copy the blobs of a folder into the bucket that RANKWRIGHT_BLOB_URL names. The service may run. Stop it, run the
    command again for the blobs that are new, and start the service with the bucket.
    """
    from rankwright.cli.common import out

    from app.operations.copying import CannotCopy, copy_blobs
    from app.operations.doctor import size
    from app.platform.errors import ServiceError
    from app.platform.sql import DBAPIError

    settings = settings_of(state_dir)
    try:
        with out.status("reading the catalogue …") as status:
            done = copy_blobs(
                settings,
                source,
                lambda so_far: status.update(f"{so_far.blobs} blobs, {size(so_far.bytes)} copied"),
            )
    except (CannotCopy, ServiceError, OSError, DBAPIError) as error:
        fail(str(error))
    typer.echo(
        f"{settings.bucket_url}: {done.blobs} blobs ({size(done.bytes)}) copied and verified, {done.present} were there"
    )
    if done.missing:
        fail(
            f"{len(done.missing)} blobs that the database refers to are missing or damaged in {source}, and "
            f"were not copied: {', '.join(done.missing[:5])}"
        )


_COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red"}
_PART_WIDTH = 13


def doctor(
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Read every byte: check the SQLite file and the hash of each blob."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    state_dir: StateDir = None,
) -> None:
    """Check settings, disk, database, queue, workers, broker and blobs. The service need not run."""
    from rankwright.cli.common import out

    from app.operations.doctor import Level

    findings = []
    for finding in _findings(state_dir, deep=deep):
        findings.append(finding)
        if not as_json:
            _print(finding.level, finding.part, finding.detail, finding.advice)
    failed = sum(finding.level == Level.FAIL for finding in findings)
    if as_json:
        body = {"ok": not failed, "findings": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(body, indent=2))
    elif failed:
        out.print(f"\n[red]{failed} of {len(findings)} checks found a problem[/]")
    raise typer.Exit(1 if failed else 0)


def _findings(state_dir: Path | None, *, deep: bool) -> Iterator[Finding]:
    """If the settings cannot be read, that is the only finding."""
    from app.operations.doctor import Finding, Level, examine

    try:
        settings = read_settings(state_dir)
    except SettingsError as error:  # nothing else can be looked at
        yield Finding(
            "settings",
            Level.FAIL,
            str(error),
            "see the page Settings of the documentation for its rule",
        )
        return
    runs = None if settings.broker_url is not None else _holder(settings) is not None
    yield from examine(settings, os.environ, broker_url=_broker_url(settings), runs=runs, deep=deep)


def _print(level: str, part: str, detail: str, advice: str | None) -> None:
    """Print level, part, detail and, on a line of its own, advice."""
    from rankwright.cli.common import out
    from rich.text import Text

    line = Text(f"{level:<5}", style=_COLOURS[level])
    line.append(f"{part:<{_PART_WIDTH}} {detail}", style="default")
    out.print(line)
    if advice is not None:
        out.print(Text(f"{'':<{5 + _PART_WIDTH}} → {advice}", style="bold"))


def _broker_url(settings: Settings) -> str:
    """Return the configured broker, or the private one of `rankwright serve`."""
    from app.serve import broker

    if settings.broker_url is not None:
        return settings.celery_broker_url
    return broker.url(broker.socket_path(settings.state_dir.absolute()))


def _holder(settings: Settings) -> int | None:
    """Return the pid of the `rankwright serve` on this state, from its lock file."""
    pid = None
    try:
        with (settings.state_dir / "lock").open() as file:
            pid = int(file.read())
            os.kill(pid, 0)  # first, so that the lock is rarely tried while a service starts
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (PermissionError, BlockingIOError):
        return pid
    except (OSError, ValueError):
        pass
    return None
