"""`rankwright upload | read-again | versions`: tables on the way to the service."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwright import api, types
from rankwright.cli.common import (
    AppendTo,
    CommandFailed,
    DatasetName,
    Exit,
    InPlaceOf,
    PairsFile,
    Service,
    TableOrFolder,
    asks,
    err,
    out,
    sending,
    table_file,
    takes,
)
from rankwright.client import Client
from rankwright.errors import MAX_SHOWN, InvalidTable, describe_errors
from rankwright.printable import one_line
from rankwright.resources import Dataset


@asks()
@takes(api.UploadDataset)
def upload(
    client: Service,
    table: TableOrFolder,
    *,
    name: DatasetName = None,
    append_to: AppendTo = None,
    in_place_of: InPlaceOf = None,
    pairs: PairsFile = None,
    **fields: Any,
) -> None:
    """Upload a table and wait until it is ready for training.

    The files of a folder become one dataset. If an upload was interrupted, run the same command again to continue it.
    """
    if pairs is not None and fields.get("kind") != "preferences":
        raise typer.BadParameter("--pairs requires --kind preferences")
    if append_to is not None and in_place_of is not None:
        raise typer.BadParameter("use --append-to or --in-place-of, not both")
    parent = append_to or in_place_of
    with table_file(table) as path:
        if parent is not None:
            mode = "append" if append_to else "replace"
            said = fields if name is None else {"name": name, **fields}
            dataset = _send_version(client, path, parent, said, mode, table)
        else:
            fields["name"] = name or path.resolve().name.split(".")[0]
            dataset = send_table(client, path, pairs, fields, table)
    if not client.prints_json(dataset.to_json()):
        show_dataset(dataset)


@asks()
@takes(api.ReadTableAgain)
def read_again(
    client: Service,
    dataset: Annotated[
        str,
        typer.Argument(help="Id of the dataset, or its name for the newest version that is ready."),
    ],
    *,
    reset: Annotated[
        str | None,
        typer.Option(help="Fields to reset to their default, separated by commas, such as `drop`."),
    ] = None,
    **fields: Any,
) -> None:
    """Reread an uploaded table with another label, group or other fields. The result is a new dataset."""
    first = client.datasets[find_dataset(client, dataset)]
    made = first.read_again(**fields, reset=reset.split(",") if reset else (), wait=False)
    wait_for(made, f"the table of {first.id}")
    if not client.prints_json(made.data.to_json()):
        show_dataset(made.data)


def show_dataset(dataset: types.Dataset) -> None:
    from rich.markup import escape

    features = sum(column.role == "feature" for column in dataset.columns)
    out.print(
        f"[bold]{dataset.id}[/]  {escape(one_line(dataset.name))}{_numbered(dataset)}: {dataset.rows:,} rows, "
        f"{features} features, "
        f"{escape(one_line(_target(dataset)))}"
    )
    _show_warnings(dataset.warnings)


def _show_warnings(warnings: list[types.TableWarning]) -> None:
    """Print the table's warnings, each with the option that changes it."""
    for warning in warnings[:MAX_SHOWN]:
        option = f"--{warning.parameter}"
        err.print_line(f"column {warning.column}: {warning.detail} ({option})")
    if len(warnings) > MAX_SHOWN:
        err.print(f"… and {len(warnings) - MAX_SHOWN} more; `rankwright profile` lists all of them")


def _numbered(dataset: types.Dataset) -> str:
    return f", version {dataset.version}" if dataset.parent_id else ""


def send_table(
    client: Client, table: Path, pairs: Path | None, fields: dict[str, Any], typed: Path
) -> types.Dataset:
    """Upload a table, and its pairs if there are any; return the dataset once it is ready. `typed` is its name for the
    user: `-` for standard input.

    Raises CommandFailed if the table or its pairs are invalid.
    """
    with sending(table) as progress:
        dataset = client.upload(table, **fields, progress=progress, wait=False)
    wait_for(dataset, typed, fields)
    if pairs is not None:
        with sending(pairs) as progress:
            dataset.put_pairs(pairs, progress=progress, wait=False)
        wait_for(dataset, pairs)
    return dataset.data


def _send_version(
    client: Client, table: Path, parent: str, fields: dict[str, Any], mode: str, typed: Path
) -> types.Dataset:
    """Upload a table as a new version of a dataset; return that once it is ready."""
    if others := fields.keys() - api.CreateVersion.__annotations__.keys():
        raise CommandFailed(
            f"{', '.join(sorted(others))} cannot be set here: a new version has the column roles of "
            f"{parent}"
        )
    with sending(table) as progress:
        dataset = client.datasets[find_dataset(client, parent)].add_version(
            table, mode=mode, **fields, progress=progress, wait=False
        )
    wait_for(dataset, typed)
    return dataset.data


def find_dataset(client: Client, ref: str) -> str:
    """Return a dataset's id: `ref` itself, or the id of the newest ready dataset that is called so. If none is ready,
    the newest one, so that the service says what it lacks.
    """
    if ref.startswith("ds_"):
        return ref
    for latest in (True, False):
        for found in client.datasets.list(name=ref, latest=latest):
            return found.id
    raise CommandFailed(
        f"there is no dataset with the id or the name {ref!r}; `rankwright list datasets` shows them",
        Exit.NOT_FOUND,
    )


def wait_for(dataset: Dataset, path: Path | str, fields: Mapping[str, Any] | None = None) -> None:
    """Wait until a table or its pairs have been read. Raises CommandFailed if they are invalid.

    With the `fields` of an upload the message suggests a command that would do.
    """
    try:
        dataset.wait()
    except InvalidTable as invalid:
        errors = invalid.errors
    else:
        return
    lines = [f"{path} is not valid:", *describe_errors(errors)]
    suggested = next((e["suggestion"] for e in errors if e.get("suggestion")), None)
    if suggested is not None and fields is not None:
        path = Path(path)
        wanted = {**fields, **suggested}
        if wanted.get("name") == path.name.split(".")[0]:
            del wanted["name"]  # which it is anyway
        # A strict caller has a third value of the label refused, whichever is positive.
        strict = ["--strict"] if wanted.pop("strict", None) and "positive" not in suggested else []
        options = [word for field, value in wanted.items() for word in (f"--{field}", value)]
        lines += [
            "try:",
            "  " + shlex.join(["rankwright", "upload", str(path), *options, *strict]),
        ]
    raise CommandFailed("\n".join(lines), errors=errors)


def _target(dataset: types.Dataset) -> str:
    match dataset.kind:
        case "preferences":
            pairs = dataset.pairs
            return f"{pairs.pairs:,} pairs of {pairs.items:,} items" if pairs else "no pairs yet"
        case "multilabel":
            labels = [label.name for label in dataset.labels or []]
            return f"{len(labels)} labels ({', '.join(labels)})"
        case "graded":
            grades = ", ".join(f"{each.grade}: {each.rows:,}" for each in dataset.grades or [])
            target = f"grades of {dataset.label} ({grades})"
        case _:
            percent = 100 * (dataset.positives or 0) / (dataset.rows or 1)
            target = (
                f"positive class: {dataset.label} = {dataset.positive} "
                f"({dataset.positives:,} rows, {percent:.3g} %)"
            )
    if (found := dataset.queries) is not None:
        target += f", {found.queries:,} queries of {found.min_rows:,} to {found.max_rows:,} rows"
    return target


@asks()
def versions(
    client: Service,
    dataset: Annotated[str, typer.Argument(help="Id of any version of the dataset, or its name.")],
) -> None:
    """List the versions of a dataset, newest first."""
    found = list(client.datasets[find_dataset(client, dataset)].versions())
    if client.prints_json([each.to_json() for each in found]):
        return
    for each in found:
        rows = "" if each.rows is None else f", {each.rows:,} rows"
        made = f", {each.mode} of {each.parent_id}" if each.mode else ""
        content = f", SHA-256 {each.sha256[:16]}…" if each.status == "ready" else ""
        out.print(
            f"{each.version}  [bold]{each.id}[/]  {each.status}{rows}{made}, {each.created_at}{content}"
        )
