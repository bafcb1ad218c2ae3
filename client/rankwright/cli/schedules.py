"""Commands for schedules: times at which datasets are refreshed."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwright import types
from rankwright.cli.common import Service, asks, err, out, print_lines
from rankwright.cli.datasets import find_dataset

Schedule = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Id of the schedule, sch_….")]

schedules = typer.Typer(
    no_args_is_help=True,
    help="Create, list, pause, resume and delete schedules, which refresh datasets from their sources.",
)


@schedules.command()
@asks()
def create(
    client: Service,
    dataset: Annotated[
        str,
        typer.Argument(help="Id of the dataset, or its name for the newest version that is ready."),
    ],
    cron: Annotated[
        str,
        typer.Argument(
            help="Cron expression of five fields in UTC: minute, hour, day of month, month, day of week."
        ),
    ],
) -> None:
    """Refresh a dataset at the times of a cron expression."""
    made = client.schedules.create(find_dataset(client, dataset), cron)
    _show(client, made)


@schedules.command("list")
@asks()
def list_schedules(client: Service) -> None:
    """List the schedules with their last runs, newest first."""
    found = [*client.schedules.list()]
    if client.prints_json([each.to_json() for each in found]):
        return
    if not found:
        err.print_line("there is no schedule")
        return
    print_lines(map(_line, found))


@schedules.command()
@asks()
def pause(client: Service, schedule: Schedule) -> None:
    """Pause a schedule."""
    found = client.schedules.update(schedule, paused=True)
    _show(client, found)


@schedules.command()
@asks()
def resume(client: Service, schedule: Schedule) -> None:
    """Resume a schedule. Times that it has missed are not run, and later runs act as you."""
    found = client.schedules.update(schedule, paused=False)
    _show(client, found)


@schedules.command()
@asks(json=None)
def delete(client: Service, schedule: Schedule) -> None:
    """Delete a schedule. Datasets that it has made stay."""
    client.schedules.delete(schedule)
    out.print_line(f"{schedule}  deleted")


def _show(client: Service, found: types.Schedule) -> None:
    if not client.prints_json(found.to_json()):
        print_lines([_line(found)])


def _line(schedule: types.Schedule) -> tuple[str, ...]:
    if schedule.next_run_at is None:
        state = f"paused ({schedule.paused_reason})"
    else:
        state = f"next {schedule.next_run_at[:16]}Z"
    line = (schedule.id, schedule.cron, state, f"refreshes {schedule.dataset_id}")
    last = _last_run(schedule)
    return (*line, last) if last else line


def _last_run(schedule: types.Schedule) -> str:
    if schedule.last_error is not None:
        return f"last: {schedule.last_error.code}"
    return "" if schedule.last_job_state is None else f"last: {schedule.last_job_state}"
