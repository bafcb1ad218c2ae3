"""`rankwright sources | fetch | refresh`: datasets whose rows the service takes from an object store or a database."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankwright import api
from rankwright.cli.common import Service, asks, out, takes
from rankwright.cli.datasets import find_dataset, show_dataset, wait_for
from rankwright.printable import one_line
from rankwright.transport import parameter_value
from rankwright.types import SourceList


@asks()
def sources(client: Service) -> None:
    """List the object stores and databases that datasets can be made from, with their queries."""
    found = client.datasets.sources()
    if client.prints_json(found.to_json()):
        return
    for each in found.data:
        out.print_line(one_line(f"{each.name}  {each.prefix or each.driver}"))
        for query in each.queries or []:
            parameters = ", ".join(f"{of.name} ({of.type})" for of in query.parameters)
            out.print_line(one_line(f"  {each.name}/{query.name}  {parameters}".rstrip()))


@asks()
@takes(api.UploadDataset)
def fetch(
    client: Service,
    source: Annotated[
        str,
        typer.Argument(
            help="URL of an object, or with a slash at the end, of all objects below it; or CONNECTION/QUERY."
        ),
    ],
    *,
    name: Annotated[str, typer.Option(help="Name of the dataset.")],
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of the query; repeatable.",
        ),
    ] = None,
    **fields: Any,
) -> None:
    """Create a dataset from an object store or a query, and wait until it is ready."""
    if "://" in source and parameter:
        raise typer.BadParameter("--parameter requires CONNECTION/QUERY")
    connection, separator, query = source.partition("/")
    if not (separator and query):
        raise typer.BadParameter(f"SOURCE must be a URL or CONNECTION/QUERY, got {source!r}")
    texts = _texts(parameter or [])
    of: Any = source
    if "://" not in source:
        types = _types_of(client.datasets.sources(), connection, query) if texts else {}
        parameters = {each: parameter_value(texts[each], types.get(each)) for each in texts}
        of = {"connection": connection, "query": query, "parameters": parameters}
    made = client.datasets.create(of, name=name, wait=False, **fields)
    wait_for(made, source, fields)
    if not client.prints_json(made.data.to_json()):
        show_dataset(made.data)


def _texts(given: list[str]) -> dict[str, str]:
    """Return the values of parameters by name, as they were typed."""
    found: dict[str, str] = {}
    for each in given:
        name, separator, text = each.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"--parameter must be NAME=VALUE, got {each!r}")
        found[name] = text
    return found


def _types_of(known: SourceList, connection: str, query: str) -> dict[str, str]:
    """Return the types of a query's parameters by name; empty for an unknown query, which the API rejects."""
    return {
        parameter.name: parameter.type
        for each in known.data
        for of in each.queries or []
        if (each.name, of.name) == (connection, query)
        for parameter in of.parameters
    }


@asks()
def refresh(
    client: Service,
    dataset: Annotated[
        str,
        typer.Argument(help="Id of the dataset, or its name for the newest version that is ready."),
    ],
) -> None:
    """Read the source of a dataset again. The result is a new version, or `unchanged` if it has the same rows."""
    id_ = find_dataset(client, dataset)
    made = client.datasets.refresh(id_, wait=False)
    wait_for(made, f"the source of {id_}")
    if client.as_json:
        out.print_json(data=made.data.to_json())
    elif made.data.status == "unchanged":
        out.print(f"unchanged: the source has the rows of [bold]{id_}[/]")
    else:
        show_dataset(made.data)
