"""`rankwright trash list | restore | delete`: what was deleted in the last 30 days."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwright.cli.common import Service, asks, err, out, print_lines

trash = typer.Typer(
    name="trash",
    help="List, restore or permanently delete deleted resources.",
    no_args_is_help=True,
)

Item = Annotated[str, typer.Argument(help="Id of the deleted resource, as shown by `trash list`.")]


@trash.command("list")
@asks()
def list_(
    client: Service,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of items to list.")] = 20,
) -> None:
    """List the deleted resources, the most recently deleted first."""
    found = list(client.trash.list(limit=limit + 1))
    shown = found[:limit]
    if client.prints_json([each.to_json() for each in shown]):
        return
    if not shown:
        err.print("the trash is empty", markup=False)
        return
    print_lines(
        (
            each.id,
            each.kind.replace("_", " "),
            each.name if each.version is None else f"{each.name}:{each.version}",
            f"deleted {each.deleted_at[:10]}",
            f"kept until {each.expires_at[:10]}",
        )
        for each in shown
    )
    if len(found) > limit:
        err.print(f"… and more: --limit is {limit}")


@trash.command()
@asks(json=None)
def restore(client: Service, item: Item) -> None:
    """Restore a deleted resource, unchanged."""
    found = client.trash.restore(item)
    out.print_line(f"{found.id}  {found.kind.replace('_', ' ')} {found.name} is restored")


@trash.command()
@asks(json=None)
def delete(client: Service, item: Item) -> None:
    """Permanently delete a resource in the trash."""
    client.trash.delete(item)
    out.print_line(f"{item}  permanently deleted")
