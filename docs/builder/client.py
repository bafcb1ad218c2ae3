"""The reference of the client: its operations are made of requests, so that their signatures need some care."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from docs.builder.bounds import alternatives
from docs.builder.docstrings import Docstring
from docs.builder.markdown import heading, link, slug, table
from docs.builder.names import PYTHON, Names, Public
from docs.builder.python import Writer, summary

FOLDER = f"{PYTHON}client/"
COLLECTIONS, MODELS, ADMINISTRATION = (
    f"{FOLDER}{name}.md" for name in ("collections", "models", "administration")
)
"""The pages of the client's collections: that of models has a page of its own, because it is the largest."""
OF_ADMINS = ("keys", "quotas", "retention", "holds", "webhooks")
PLAIN = {"Iterator", "Any", "None", "Page", "Sequence", "Mapping", "Literal"}
RESOURCES = ("Dataset", "Job", "Model", "Evaluation", "Comparison", "BatchScore")


def client_pages(names: Names) -> dict[str, list[str]]:
    """Return the pages of the client and of what it returns."""
    from rankwright import resources

    for name in RESOURCES:
        page = f"{FOLDER}{slug(re.sub('(?<=[a-z])(?=[A-Z])', '-', name))}.md"
        path = f"rankwright.{name}"
        names.entries[path] = Public(path, getattr(resources, name), page)
    pages = {
        names.entries[f"rankwright.{name}"].page: [*_resource(names, name)] for name in RESOURCES
    }
    pages[f"{FOLDER}index.md"] = [*_client(names)]
    pages[COLLECTIONS] = [*_collection_entries(names, COLLECTIONS, "Collections of the client")]
    pages[ADMINISTRATION] = [*_collection_entries(names, ADMINISTRATION, "Administration")]
    pages[MODELS] = [*_collection_entries(names, MODELS, "Models of the client")]
    for name in RESOURCES:
        del names.entries[f"rankwright.{name}"]  # they are made by calls, not by the reader
    return pages


class ClientWriter(Writer):
    """Writes entries of operations."""

    def operations(self, kind: type, path: str, level: int) -> Iterator[str]:
        """Yield the operations and methods of a class, with those that it inherits."""
        found = dict(_operations(kind))
        for name, item in found.items():
            described = getattr(item, "describe", item)
            returns = result_of(name, item)
            yield from self.method(name, described, path, level, returns=returns)
            kinds = [
                self.result(each)
                for each in re.findall(r"\b[A-Z]\w+", returns)
                if each not in PLAIN
            ]
            if kinds:
                yield from ("<p class='caption'>Returns</p>", "", alternatives(kinds), "")

    def result(self, name: str) -> str:
        """Return a link to what a result has: a resource, or the object of the API of this name."""
        found = self.names.entries.get(f"rankwright.{name}")
        return (
            link(f"`{name}`", found.address, self.page) if found else f"[`{name}`](SCHEMA:{name})"
        )

    def overview(self, kind: type, path: str) -> Iterator[str]:
        """Yield a table of the operations of a class."""
        rows = [
            (
                link(f"`{name}`{{.whole}}", f"{self.page}#{path}.{name}", self.page),
                summary(getattr(item, "describe", item)),
            )
            for name, item in _operations(kind)
        ]
        yield from table(("Method", "Description"), *rows, kind="names")


def _operations(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public operations and methods of a class in the order of the source, those of its bases first."""
    order = {
        name: k for k, name in enumerate(n for base in reversed(kind.__mro__) for n in vars(base))
    }
    members = [
        (name, item)
        for name, item in inspect.getmembers_static(kind)
        if not name.startswith("_") and (hasattr(item, "describe") or inspect.isfunction(item))
    ]
    yield from sorted(members, key=lambda each: order[each[0]])


def result_of(name: str, item: Any) -> str:
    """Return the type that an operation returns under the blocking client."""
    described = getattr(item, "describe", item)
    try:
        text = str(inspect.signature(described).return_annotation)
    except (TypeError, ValueError):
        return ""
    text = text.replace("types.", "").replace("_empty", "Any")
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", text)
    text = re.sub(r"Either\[(\w+), \w+\]", r"\1", text)
    for outer in ("Steps", "ApiRequest"):
        found = re.fullmatch(rf"{outer}\[(.*)\]", text)
        text = found[1] if found else text
    is_list = type(item).__name__ == "Iteration"
    if is_list:
        inner = re.fullmatch(r"(?:Items|Page)\[(.*)\]", text)
        return f"Iterator[{inner[1] if inner else 'Any'}]"
    return "" if "inspect" in text else text


def _resource(names: Names, name: str) -> Iterator[str]:
    public = names.entries[f"rankwright.{name}"]
    writer, kind, path = ClientWriter(names, public.page), public.item, name
    docstring = Docstring.of(kind)
    yield from heading(1, f"`{name}`", public.path, "name")
    yield from writer.about(docstring, public.path)
    yield f"It also has the fields of [`{name}`](SCHEMA:{name}) as attributes, as of the last time that it was read."
    yield ""
    yield from writer.examples(docstring, public.path)
    yield from writer.attributes(kind, docstring, {"data"}, path, 2)
    yield from heading(2, "Methods")
    yield from writer.overview(kind, path)
    yield from writer.operations(kind, path, 3)


def _client(names: Names) -> Iterator[str]:
    public = names.entries["rankwright.Client"]
    writer = ClientWriter(names, public.page)
    kind, docstring = public.item, Docstring.of(public.item)
    yield from heading(1, f"`{public.path}`", public.path, "name")
    from docs.builder.signatures import parameters_of

    parameters = parameters_of(kind)
    yield from writer.signature(public.path, parameters, "")
    yield from writer.about(docstring, public.path)
    yield from writer.examples(docstring, public.path)
    yield from writer.parameters(parameters, public.path, 2)
    yield from writer.attributes(kind, docstring, set(), "Client", 2)
    yield from heading(2, "What the client can do")
    yield from writer.overview(kind, "Client")
    collections = [*_collections()]
    rows = [
        (
            link(f"`client.{name}`{{.whole}}", f"{_page_of(name)}#client.{name}", public.page),
            summary(each),
            _named_methods(each),
        )
        for name, each in collections
    ]
    yield from table(("Collection", "Description", "Methods"), *rows, kind="names")
    yield from heading(2, "Methods")
    yield from writer.operations(kind, "Client", 3)
    yield from writer.notes(docstring, 2, public.path)


def _collection_entries(names: Names, page: str, title: str) -> Iterator[str]:
    """Yield the entries of the collections of a page."""
    writer = ClientWriter(names, page)
    yield from heading(1, title)
    yield f"A {link('`Client`', f'{FOLDER}index.md', page)} has one attribute for each kind of resource."
    yield ""
    for name, each in _collections():
        if _page_of(name) == page:
            yield from heading(2, f"`client.{name}`", f"client.{name}", "name")
            yield from writer.about(Docstring.of(each), f"client.{name}")
            yield from writer.operations(each, f"client.{name}", 3)


def _page_of(collection: str) -> str:
    if collection in OF_ADMINS:
        return ADMINISTRATION
    return MODELS if collection == "models" else COLLECTIONS


def _named_methods(kind: type) -> str:
    return ", ".join(f"`{name}`" for name, _ in _operations(kind))


def _collections() -> Iterator[tuple[str, type]]:
    """Yield the collections of a client."""
    from rankwright import Client

    with Client("http://127.0.0.1:1", "rw_none") as client:
        for name, value in vars(client).items():
            if not name.startswith("_"):
                yield name, type(value)
