"""`rankwright audit verify`: compute the seals of the audit log again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.cli.processes import database, fail, settings_of


def verify(
    *,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:MAC",
            help="Number and MAC of a seal that was recorded elsewhere, such as in a log of the dispatcher.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of the service's state.", envvar="RANKWRIGHT_STATE_DIR"),
    ] = None,
) -> None:
    """Verify the audit log: compute all its seals again, and name each entry and seal that was changed, removed, moved
    or added. The service may run. Exits with 1 if something was found.
    """
    from rankwright.cli.common import err, out

    from app.operations.audit_seals import Verified, read_head
    from app.operations.audit_seals import verify as verify_log
    from app.operations.seal_repository import Head
    from app.platform.audit_keys import BadAuditKeys
    from app.platform.stores import REQUEST_PATIENCE, open_store

    settings = settings_of(state_dir)
    try:
        keys = settings.read_audit_keys()
        given = None if head is None else Head.parse(head)
    except BadAuditKeys as error:
        fail(str(error))
    except ValueError as error:
        raise typer.BadParameter(f"--head {error}") from None
    if keys.newest is None:
        fail("the audit log is not sealed: RANKWRIGHT_AUDIT_KEY_FILE is not set")
    found, flaws = Verified(), []
    with database(settings) as db:
        noted = read_head(open_store(settings, REQUEST_PATIENCE), keys)
        recorded = [("the note beside the blobs", noted)]
        if given is not None:
            recorded.append(("--head", given))
        for flaw in verify_log(db, keys, found, recorded=recorded):
            flaws.append(flaw)
            if not as_json:
                out.print_line(f"{flaw.kind}: {flaw.detail}")
    if as_json:
        body = {"ok": not flaws, "flaws": [asdict(flaw) for flaw in flaws]}
        counts = {"seals": found.seals, "entries": found.entries, "removed": found.removed_entries}
        typer.echo(json.dumps(body | counts | {"head": str(found.head) if found.head else None}))
    else:
        err.print_line(
            f"{found.entries} entries in {found.seals} seals, {found.removed_entries} removed by retention before "
            f"them; the last seal is {found.head or 'none'}"
        )
    raise typer.Exit(1 if flaws else 0)
