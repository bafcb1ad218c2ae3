"""`rankwright backup | restore`: the embedded state, into a folder or a tar file and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.processes import MANAGE, fault, settings_of

StateDir = Annotated[
    Path | None, typer.Option(help="Folder of all state.", envvar="RANKWRIGHT_STATE_DIR")
]


def backup(
    target: Annotated[
        Path, typer.Argument(help="New folder, or tar file where its name ends in .tar.")
    ],
    state_dir: StateDir = None,
) -> None:
    """Back up the embedded state, whether it runs or not, and read the backup back. It holds the first key."""
    from alembic.util import CommandError
    from sqlalchemy.exc import DBAPIError

    from app.operations.backup import BackupError, back_up
    from app.operations.doctor import size
    from app.platform.errors import ServiceError
    from app.platform.migrate import reason

    try:
        made = back_up(settings_of(state_dir), target)
    except (BackupError, ServiceError, OSError, DBAPIError, CommandError) as error:
        fault(reason(error))
    typer.echo(
        f"{target}: the database and {made.blobs} blobs, {size(made.bytes)}, read back and sound"
    )
    if made.missing:
        fault(
            f"{len(made.missing)} blobs that rows name were missing or damaged, and are not in the backup: "
            f"{', '.join(made.missing[:5])}"
        )


def restore(
    source: Annotated[Path, typer.Argument(exists=True, help="What `rankwright backup` wrote.")],
    state_dir: StateDir = None,
) -> None:
    """Make the state of a backup anew, in a folder that is empty or not there; then start `rankwright serve`."""
    from app.operations.backup import BackupError
    from app.operations.backup import restore as restore_state

    settings = settings_of(state_dir)
    if settings.database_url is not None or settings.blob_url is not None:
        fault(
            "a backup is restored into a state folder: "
            "unset RANKWRIGHT_DATABASE_URL and RANKWRIGHT_BLOB_URL"
        )
    try:
        made = restore_state(source, settings.state_dir)
    except (BackupError, OSError) as error:
        fault(str(error))
    typer.echo(
        f"{settings.state_dir.absolute()} is the state of {made.made_at}: start it with `rankwright serve`"
    )


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (backup, restore):
        app.command(rich_help_panel=MANAGE)(command)
