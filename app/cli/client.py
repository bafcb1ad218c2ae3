"""`rankwright upload | versions | show | algorithms`, and what the commands that call the service share."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from app.cli.api_client import (
    SHOWN_ERRORS,
    ApiClient,
    ClientError,
    default_state_dir,
    describe_errors,
)
from app.cli.options import (
    AppendTo,
    AsJson,
    Categorical,
    DatasetName,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Group,
    InPlaceOf,
    Item,
    Key,
    Kind,
    Label,
    Labels,
    Missing,
    Numeric,
    PairsFile,
    Positive,
    Strict,
    Svg,
    TableFile,
    Url,
    Weight,
    given,
)
from app.cli.report_text import curve_of, evaluated_on, has_curve, provenance, report

if TYPE_CHECKING:
    from rich.table import Table

# Soft wrap: a terminal breaks long lines, a pipe must not.
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def service(url: str | None, key: str | None) -> Iterator[ApiClient]:
    """Open the client. A ClientError ends the command with a red sentence and exit code 1."""
    try:
        with ApiClient.find(url, key, default_state_dir()) as client:
            yield client
    except ClientError as error:
        err.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error


def upload(
    table: TableFile,
    *,
    label: Label = None,
    positive: Positive = None,
    name: DatasetName = None,
    weight: Weight = None,
    group: Group = None,
    kind: Kind = None,
    item: Item = None,
    labels: Labels = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    missing: Missing = None,
    strict: Strict = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    append_to: AppendTo = None,
    in_place_of: InPlaceOf = None,
    pairs: PairsFile = None,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Upload a table and wait until it is ready to train on."""
    fields = given(
        name=name,
        label=label,
        positive=positive,
        weight=weight,
        group=group,
        kind=kind,
        item=item,
        labels=labels,
        categorical=categorical,
        numeric=numeric,
        drop=drop,
        missing=missing,
        strict="true" if strict else None,
        encoding=encoding,
        delimiter=delimiter,
        decimal=decimal,
    )
    if pairs is not None and kind != "preferences":
        raise typer.BadParameter("--pairs needs --kind preferences")
    if append_to is not None and in_place_of is not None:
        raise typer.BadParameter("use --append-to or --in-place-of, not both")
    parent = append_to or in_place_of
    fields |= (
        {"mode": "append" if append_to else "replace"}
        if parent
        else {"name": name or table.name.split(".")[0]}
    )
    with service(url, key) as client:
        dataset = send_table(client, table, pairs, fields, parent)
    if as_json:
        out.print_json(data=dataset)
    else:
        _show_dataset(dataset)


def _show_dataset(dataset: dict[str, Any]) -> None:
    from rich.markup import escape

    features = sum(column["role"] == "feature" for column in dataset["columns"])
    out.print(
        f"[bold]{dataset['id']}[/]  {escape(dataset['name'])}{_numbered(dataset)}: {dataset['rows']:,} rows, "
        f"{features} features, "
        f"{escape(_target(dataset))}"
    )
    _show_warnings(dataset["warnings"])


def _show_warnings(warnings: list[dict[str, Any]]) -> None:
    """Print the table's warnings, each with the option that changes it."""
    for warning in warnings[:SHOWN_ERRORS]:
        option = f"--{warning['parameter']}"
        err.print(f"column {warning['column']}: {warning['detail']} ({option})", markup=False)
    if len(warnings) > SHOWN_ERRORS:
        err.print(f"… and {len(warnings) - SHOWN_ERRORS} more; rankwright profile lists them all")


def _numbered(dataset: dict[str, Any]) -> str:
    return f", version {dataset['version']}" if dataset["parent_id"] else ""


def send_table(
    client: ApiClient,
    table: Path,
    pairs: Path | None,
    fields: dict[str, str],
    parent: str | None = None,
) -> dict[str, Any]:
    """Upload a table, and its pairs if there are any; returns the dataset once it is ready.

    With a parent it becomes a new version of that. Raises ClientError if the table or its pairs are invalid.
    """
    with sending(table) as sent:
        dataset = client.upload(table, fields, sent, parent)
    _refuse_invalid(table, dataset, fields)
    if pairs is not None:
        with sending(pairs) as sent:
            dataset = client.compare(dataset["id"], pairs, sent)
        _refuse_invalid(pairs, dataset["pairs"])
    return dataset


@contextmanager
def sending(path: Path) -> Iterator[Callable[[int], None]]:
    """Show how much of a file has been sent."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("uploading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("", total=path.stat().st_size)
        yield lambda sent: progress.advance(bar, sent)


def _refuse_invalid(
    path: Path, state: dict[str, Any], fields: Mapping[str, str] | None = None
) -> None:
    if state["status"] != "invalid":
        return
    lines = [f"{path} is not valid:", *describe_errors(state["errors"])]
    suggested = next((e["suggestion"] for e in state["errors"] if e.get("suggestion")), None)
    if suggested is not None and fields is not None and "mode" not in fields:
        options_given = {**fields, **suggested}
        if options_given.get("name") == path.name.split(".")[0]:
            del options_given["name"]  # which it is anyway
        # A strict caller has a third value of the label refused, whichever is positive.
        strict = (
            ["--strict"]
            if options_given.pop("strict", None) and "positive" not in suggested
            else []
        )
        options = [
            word for field, value in options_given.items() for word in (f"--{field}", value)
        ] + strict
        lines += ["try:", "  " + shlex.join(["rankwright", "upload", str(path), *options])]
    raise ClientError("\n".join(lines))


def _target(dataset: dict[str, Any]) -> str:
    match dataset["kind"]:
        case "preferences":
            pairs = dataset["pairs"]
            return (
                f"{pairs['pairs']:,} pairs of {pairs['items']:,} items" if pairs else "no pairs yet"
            )
        case "multilabel":
            labels = [label["name"] for label in dataset["labels"]]
            return f"{len(labels)} labels ({', '.join(labels)})"
    return f"{dataset['positives']:,} positive ({dataset['label']} = {dataset['positive']})"


def versions(
    dataset: Annotated[str, typer.Argument(help="Id of any version of the dataset.")],
    *,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List the versions of a dataset, newest first."""
    with service(url, key) as client:
        found = client.versions(dataset)
    if as_json:
        out.print_json(data=found)
        return
    for each in found:
        rows = "" if each["rows"] is None else f", {each['rows']:,} rows"
        made = f", {each['mode']} of {each['parent_id']}" if each["mode"] else ""
        out.print(
            f"{each['version']}  [bold]{each['id']}[/]  {each['status']}{rows}{made}, {each['created_at']}, "
            f"SHA-256 {each['sha256'][:16]}…"
        )


def show(
    model: Annotated[str, typer.Argument(help="The model: id, name, name:version or name@alias.")],
    *,
    svg: Svg = None,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the metrics of a model on held-out rows or pairs, and its ROC curve, if it has one."""
    with service(url, key) as client:
        show_model(client, model, svg, as_json=as_json)


def show_model(client: ApiClient, ref: str, svg: Path | None, *, as_json: bool) -> None:
    """Print the figures of a model, and write its curve to an SVG file if one is given."""
    model = client.model(ref)
    metrics = client.model(model["id"], "metrics", on=evaluated_on(model))
    roc = curve_of(client, model, metrics) if has_curve(model) else None
    if as_json:
        out.print_json(data={"model": model, "metrics": metrics})
    else:
        out.print(report(model, metrics, roc), markup=False)
        out.print(f"\n{provenance(model)}", markup=False)
        out.print(f"[bold]{model['id']}[/]  {model['name']}:{model['version']}")
    if svg is not None:
        if roc is None:
            raise ClientError(f"{svg} was not written: {model['name']} has no ROC curve")
        svg.write_text(client.model_text(model["id"], "plot"), encoding="utf-8")


def algorithms(
    name: Annotated[
        str | None, typer.Argument(help="Name of an algorithm: show its parameters.")
    ] = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """List the algorithms, or the parameters of one algorithm."""
    with service(url, key) as client:
        known = {entry["name"]: entry for entry in client.request("GET", "/v1/algorithms")["data"]}
        if name is not None and name not in known:
            raise ClientError(f"algorithm must be one of {', '.join(known)}, got {name!r}")
    if name is None:
        table = new_table("algorithm", "source")
        for entry in known.values():
            table.add_row(entry["name"], entry["paper"])
    else:
        table = new_table("parameter", "default", "meaning")
        for parameter, schema in known[name]["parameters"]["properties"].items():
            default = json.dumps(schema.get("default"))
            table.add_row(parameter, default, schema.get("description", ""))
    out.print(table, soft_wrap=False)


def new_table(*headings: str) -> Table:
    """Make an empty table without lines."""
    from rich.table import Table

    return Table(*headings, box=None, pad_edge=False, show_header=bool(headings))


def split_assignment(text: str) -> tuple[str, str]:
    """Split name=value. Raises ClientError for a text without a name or "="."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ClientError(f"a feature or parameter must read name=value, got {text!r}")
    return name, value
