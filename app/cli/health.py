"""`rankwright health`: a container's health check. Exit code 0 is well; else 1 and a sentence that says why."""

from __future__ import annotations

import socket
from typing import Annotated, Literal

import typer

from app.cli.processes import MANAGE, database, fault, settings_of


def health(
    process: Annotated[Literal["worker", "dispatcher"], typer.Argument(help="Which process.")],
) -> None:
    """Check that this host's worker, or the dispatcher, does its work. The API has /health/live and /health/ready."""
    from app.operations import health as self_check
    from app.platform.broker import Producer

    settings = settings_of()
    producer = Producer(settings.celery_broker_url)
    with database(settings) as db:
        if process == "worker":
            found = self_check.worker_fault(db, producer, settings, socket.gethostname())
        else:
            found = self_check.dispatcher_fault(db, producer, settings)
    producer.close()
    if found is not None:
        fault(found)
    typer.echo("well")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(rich_help_panel=MANAGE)(health)
