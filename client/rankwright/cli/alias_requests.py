"""Commands for protected aliases: request a change, approve it as another person, or suspend the protection."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, cast

import typer

from rankwright import types
from rankwright.cli.common import (
    CommandFailed,
    Service,
    asks,
    err,
    given,
    out,
    print_lines,
    split_alias,
)

Alias = Annotated[str, typer.Argument(metavar="NAME@ALIAS", help="The alias, as name@alias.")]
Request = Annotated[str, typer.Argument(metavar="REQUEST", help="Id of the request, arq_….")]
Reason = Annotated[str, typer.Option(help="Reason, stored with the history of the alias.")]

requests = typer.Typer(
    no_args_is_help=True,
    help="Request, list, approve, reject and withdraw changes of protected aliases.",
)


@requests.command()
@asks()
def create(
    client: Service,
    alias: Alias,
    model: Annotated[
        str | None, typer.Argument(help="Point the alias to this model: id, name:version.")
    ] = None,
    *,
    reason: Reason,
    restore: Annotated[int | None, typer.Option(help="Restore this revision instead.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the alias instead.")] = False,
    unprotect: Annotated[
        bool, typer.Option("--unprotect", help="Lift its protection instead.")
    ] = False,
    recalibrate: Annotated[
        str | None,
        typer.Option(metavar="DATASET", help="Recalibrate its model on this dataset instead."),
    ] = None,
    restore_calibration: Annotated[
        int | None, typer.Option(help="Serve this calibration of its model again instead.")
    ] = None,
    fpr: Annotated[
        float | None, typer.Option(help="With a model: guarantee an FPR of at most this.")
    ] = None,
    tpr: Annotated[
        float | None, typer.Option(help="With a model: guarantee a TPR of at least this.")
    ] = None,
    flagged: Annotated[
        float | None, typer.Option(help="With a model: flag at most this fraction of the rows.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="With a model: flag scores of at least this.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Guarantee the FPR or TPR for future rows with this confidence."),
    ] = None,
    no_guarantee: Annotated[
        bool,
        typer.Option("--no-guarantee", help="Remove the guarantee. Default: keep the current one."),
    ] = False,
) -> None:
    """Request a change of a protected alias. Another person approves it."""
    changes: dict[str, Any] = given(
        set=model,
        restore=restore,
        delete=delete or None,
        unprotect=unprotect or None,
        recalibrate=recalibrate,
        restore_calibration=restore_calibration,
    )
    guarantee = given(fpr=fpr, tpr=tpr, flagged=flagged, threshold=threshold, confidence=confidence)
    name, label = split_alias(alias)
    if len(changes) != 1:
        got = ", ".join(changes) or "none"
        raise CommandFailed(
            "pass exactly one of a model, --restore, --delete, --unprotect, --recalibrate and "
            f"--restore-calibration, got {got}"
        )
    ((kind, target),) = changes.items()
    if (guarantee or no_guarantee) and kind != "set":
        raise CommandFailed("a guarantee can be combined only with a model")
    if guarantee and no_guarantee:
        raise CommandFailed(f"--no-guarantee cannot be combined with --{next(iter(guarantee))}")
    member = {
        "set": "model",
        "restore": "revision",
        "recalibrate": "dataset",
        "restore_calibration": "calibration_version",
    }.get(kind)
    more: dict[str, Any] = {} if member is None else {member: target}
    if kind == "set":
        more["guarantee"] = guarantee or (None if no_guarantee else "keep")
    found = client.alias_requests.create(cast(Any, kind), name, label, reason, **more)
    _show(client, found)


class State(str, Enum):
    """The states of a request."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    VOID = "void"


@requests.command("list")
@asks()
def list_requests(
    client: Service,
    everything: Annotated[
        bool, typer.Option("--all", help="All requests. Default: the open ones.")
    ] = False,
    state: Annotated[State | None, typer.Option(help="Only requests in this state.")] = None,
    limit: Annotated[int, typer.Option(help="Most requests to show.", min=1)] = 20,
) -> None:
    """List the requests to change protected aliases, newest first."""
    chosen = state.value if state is not None else None if everything else State.OPEN.value
    listed = client.alias_requests.list(limit=limit + 1, **given(state=chosen))
    found = [each for each, _ in zip(listed, range(limit + 1), strict=False)]
    shown = found[:limit]
    if client.prints_json([each.to_json() for each in shown]):
        return
    if not shown:
        err.print_line("there is no request" if chosen is None else f"no request is {chosen}")
        return
    print_lines(
        (
            each.id,
            each.created_at[:10],
            f"{each.name}@{each.alias}",
            each.state,
            f"{each.before} → {each.after}",
            f"by {each.author}",
        )
        for each in shown
    )
    if len(found) > limit:
        err.print_line(f"… and more: --limit is {limit}")


@requests.command()
@asks()
def show(client: Service, request: Request) -> None:
    """Show a request: what changes, why, who asked, and who decided."""
    found = client.alias_requests.get(request)
    _show(client, found)


@requests.command()
@asks(json=None)
def approve(
    client: Service,
    request: Request,
    *,
    reason: Annotated[str | None, typer.Option(help="Reason, stored with the evidence.")] = None,
) -> None:
    """Approve a request of another person. The change is made at once."""
    found = client.alias_requests.approve(request, reason=reason)
    made = (
        f"revision {found.applied_revision}" if found.job_id is None else f"see job {found.job_id}"
    )
    if found.applied_calibration is not None:
        made = f"calibration {found.applied_calibration}"
    out.print_line(f"{found.id}  approved by {found.decided_by}: {found.after} ({made})")


@requests.command()
@asks(json=None)
def reject(client: Service, request: Request, reason: Reason) -> None:
    """Reject a request."""
    found = client.alias_requests.reject(request, reason=reason)
    out.print_line(f"{found.id}  rejected by {found.decided_by}")


@requests.command()
@asks(json=None)
def withdraw(client: Service, request: Request) -> None:
    """Withdraw your request."""
    found = client.alias_requests.withdraw(request)
    out.print_line(f"{found.id}  withdrawn by {found.decided_by}")


@asks(json=None)
def break_glass(
    client: Service,
    alias: Alias,
    *,
    reason: Annotated[str | None, typer.Option(help="Reason for the emergency.")] = None,
    hours: Annotated[
        float, typer.Option(help="Hours until the protection is in force again: at most 4.")
    ] = 1.0,
    end: Annotated[bool, typer.Option("--end", help="End the suspension now.")] = False,
) -> None:
    """Suspend the protection of an alias in an emergency, so that admins can change it without approval.

    It raises an alert, is shown on every page about the alias, and marks each change made under it.
    """
    name, label = split_alias(alias)
    if end == (reason is not None):
        raise CommandFailed("pass either --reason or --end")
    if reason is None:
        client.models.end_break_glass(name, label)
        out.print_line(f"{alias} is protected again")
        return
    found = client.models.start_break_glass(name, label, reason, seconds=hours * 3600)
    out.print_line(f"{alias} is not protected until {found.until}: admins can change it directly")


def _show(client: Service, found: types.AliasRequest) -> None:
    if client.prints_json(found.to_json()):
        return
    decided = ""
    if found.decided_at is not None:
        by = "" if found.decided_by is None else f" by {found.decided_by}"
        why = "" if found.decision_reason is None else f": {found.decision_reason}"
        decided = f"{found.state}{by}, {found.decided_at[:19]}{why}"
    lines = [
        ("request", found.id),
        ("alias", f"{found.name}@{found.alias}, revision {found.alias_revision}"),
        ("before", found.before),
        ("after", found.after),
        ("reason", found.reason),
        ("requested", f"by {found.author}, {found.created_at[:19]}"),
        ("state", decided or f"{found.state}, expires {found.expires_at[:19]}"),
        ("artifact", found.artifact_sha256),
        ("evidence", ", ".join(each.name for each in found.evidence)),
    ]
    print_lines(lines)
