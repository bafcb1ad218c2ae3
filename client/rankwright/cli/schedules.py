"""Commands for schedules: times at which datasets are refreshed."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwright import types
from rankwright.cli.common import AsJson, Key, Url, err, out, print_lines, service
from rankwright.cli.datasets import find_dataset

Schedule = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Id of the schedule, sch_….")]

schedules = typer.Typer(
    no_args_is_help=True,
    help="Create, list, pause, resume and delete schedules, which refresh datasets from their sources.",
)


@schedules.command()
def create(
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
    *,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Refresh a dataset at the times of a cron expression."""
    with service(url, key, as_json=as_json) as client:
        made = client.schedules.create(find_dataset(client, dataset), cron)
    _show(made, as_json=as_json)


@schedules.command("list")
def list_schedules(url: Url = None, key: Key = None, as_json: AsJson = False) -> None:
    """List the schedules with their last runs, newest first."""
    with service(url, key, as_json=as_json) as client:
        found = [*client.schedules.list()]
    if as_json:
        out.print_json(data=[each.to_json() for each in found])
        return
    if not found:
        err.print_line("there is no schedule")
        return
    print_lines(map(_line, found))


@schedules.command()
def pause(schedule: Schedule, url: Url = None, key: Key = None, as_json: AsJson = False) -> None:
    """Pause a schedule."""
    with service(url, key, as_json=as_json) as client:
        found = client.schedules.update(schedule, paused=True)
    _show(found, as_json=as_json)


@schedules.command()
def resume(schedule: Schedule, url: Url = None, key: Key = None, as_json: AsJson = False) -> None:
    """Resume a schedule. Times that it has missed are not run, and later runs act as you."""
    with service(url, key, as_json=as_json) as client:
        found = client.schedules.update(schedule, paused=False)
    _show(found, as_json=as_json)


@schedules.command()
def delete(schedule: Schedule, url: Url = None, key: Key = None) -> None:
    """Delete a schedule. Datasets that it has made stay."""
    with service(url, key) as client:
        client.schedules.delete(schedule)
    out.print_line(f"{schedule}  deleted")


def _show(found: types.Schedule, *, as_json: bool) -> None:
    if as_json:
        out.print_json(data=found.to_json())
    else:
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
